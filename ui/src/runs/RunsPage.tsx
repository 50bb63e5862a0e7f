import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { api } from "../api/client";
import { RUN_STATUSES } from "../api/types";
import { useTitle } from "../app/title";
import { SearchField } from "../parts/SearchField";
import { STATUS_LOOK, StatusIcon } from "../parts/StatusBadge";
import { readFilter, SPANS, writeFilter, type RunFilter } from "./filters";
import "./runs.css";
import { RunTable } from "./RunTable";

/** Typing is over when nothing was typed for so long. */
const TYPING_MS = 250;

export function RunsPage() {
  useTitle("Runs");
  const [params, setParams] = useSearchParams();
  const filter = readFilter(params);
  const set = (change: Partial<RunFilter>) => setParams(writeFilter({ ...filter, ...change }), { replace: true });
  const key = useDeferredValue(writeFilter(filter).toString());
  return (
    <div className="page runs-page">
      <div className="page-head">
        <h1>Runs</h1>
      </div>
      <div className="runs-filters">
        <nav className="status-filter" aria-label="Runs by status">
          {(["", ...RUN_STATUSES] as const).map((status) => (
            <Link key={status} href={`/runs?${writeFilter({ ...filter, status }).toString()}`} aria-current={filter.status === status ? "true" : undefined}>
              {status === "" ? (
                "All"
              ) : (
                <>
                  <StatusIcon status={status} size={14} /> {STATUS_LOOK[status].name}
                </>
              )}
            </Link>
          ))}
        </nav>
        <div className="toolbar">
          <TypedSearch value={filter.q} onChange={(q) => set({ q })} />
          <WorkflowField value={filter.workflow} onChange={(workflow) => set({ workflow })} />
          <label className="inline-field">
            Started
            <select value={filter.since} onChange={(event) => set({ since: event.target.value })}>
              {!SPANS.some(([span]) => span === filter.since) && <option value={filter.since}>last {filter.since}</option>}
              {SPANS.map(([span, name]) => (
                <option key={span} value={span}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </div>
      </div>
      <RunTable key={key} filter={filter} onClear={() => setParams(new URLSearchParams())} />
    </div>
  );
}

/** The field follows every key, the address the pauses. */
function TypedSearch({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  const [given, setGiven] = useState(value);
  if (given !== value) {
    setGiven(value); // changed from elsewhere: back, or "show all"
    setText(value);
  }
  useEffect(() => {
    if (text === value) return;
    const timer = window.setTimeout(() => onChange(text), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [text, value, onChange]);
  return <SearchField label="Search runs: id, workflow, error, input" value={text} onChange={setText} />;
}

function WorkflowField({ value, onChange }: { value: string; onChange: (workflow: string) => void }) {
  const { data } = useQuery({ queryKey: ["workflows"], queryFn: ({ signal }) => api.workflows(signal) });
  const names = (data?.workflows ?? []).map((workflow) => workflow.name);
  if (value && !names.includes(value)) names.unshift(value); // of a workflow that is no more
  return (
    <label className="inline-field">
      Workflow
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">all</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
