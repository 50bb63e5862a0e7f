import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { api } from "../api/client";
import { RUN_STATUSES } from "../api/types";
import { useTitle } from "../app/title";
import { Icon } from "../parts/Icon";
import { SearchField } from "../parts/SearchField";
import { STATUS_LOOK, StatusIcon } from "../parts/StatusBadge";
import { countOf, useCounts } from "./counts";
import { momentOf, readFilter, SPANS, writeFilter, type RunFilter } from "./filters";
import "./runs.css";
import { RunTable } from "./RunTable";
import { Views } from "./Views";

/** Typing is over when nothing was typed for so long. */
const TYPING_MS = 250;
const NO_FILTER = readFilter(new URLSearchParams());
const DAY_MS = 86_400_000;

export function RunsPage() {
  useTitle("Runs");
  const [params, setParams] = useSearchParams();
  const filter = readFilter(params);
  const set = (change: Partial<RunFilter>) =>
    setParams(writeFilter({ ...filter, view: "", ...change }), { replace: true });
  const { data: counts } = useCounts();
  const countText = (of: Partial<RunFilter>) => countOf({ ...NO_FILTER, ...of }, counts)?.toLocaleString("en") ?? "";
  const key = useDeferredValue(writeFilter(filter).toString());
  return (
    <div className="page runs-page">
      <div className="page-head">
        <h1>{filter.view ? `Runs: ${filter.view}` : "Runs"}</h1>
      </div>
      <div className="runs-filters">
        <nav className="status-filter" aria-label="Runs by status">
          {(["", ...RUN_STATUSES] as const).map((status) => (
            <Link
              key={status}
              href={`/runs?${writeFilter({ ...filter, status, waiting: "", view: "" }).toString()}`}
              aria-current={!filter.waiting && filter.status === status ? "true" : undefined}
            >
              {status === "" ? (
                <>
                  All <span className="chip-count">{countText({})}</span>
                </>
              ) : (
                <>
                  <StatusIcon status={status} size={14} /> {STATUS_LOOK[status].name}{" "}
                  <span className="chip-count">{countText({ status })}</span>
                </>
              )}
            </Link>
          ))}
          <Link
            href={`/runs?${writeFilter({ ...filter, status: "", waiting: filter.waiting ? "" : "somebody", view: "" }).toString()}`}
            aria-current={filter.waiting ? "true" : undefined}
          >
            <Icon name="bell" size={14} /> waiting for somebody{" "}
            <span className="chip-count">{countText({ waiting: "somebody" })}</span>
          </Link>
        </nav>
        <div className="toolbar">
          <TypedSearch value={filter.q} onChange={(q) => set({ q })} />
          <WorkflowField value={filter.workflow} onChange={(workflow) => set({ workflow })} />
          <StartedField filter={filter} onChange={set} />
        </div>
        <Views filter={filter} />
      </div>
      <RunTable key={key} kept={key} filter={filter} onClear={() => setParams(new URLSearchParams())} />
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

const BETWEEN = "between";

/** A span up to now, or two moments. */
function StartedField({ filter, onChange }: { filter: RunFilter; onChange: (change: Partial<RunFilter>) => void }) {
  const isRange = filter.from !== "" || filter.until !== "";
  const { since } = filter;
  return (
    <>
      <label className="inline-field">
        Started
        <select
          value={isRange ? BETWEEN : since}
          onChange={(event) => {
            if (event.target.value === BETWEEN) onChange({ since: "", from: momentOf(Date.now() - DAY_MS), until: "" });
            else onChange({ since: event.target.value, from: "", until: "" });
          }}
        >
          {!SPANS.some(([span]) => span === since) && <option value={since}>last {since}</option>}
          {SPANS.map(([span, name]) => (
            <option key={span} value={span}>
              {name}
            </option>
          ))}
          <option value={BETWEEN}>between…</option>
        </select>
      </label>
      {isRange && (
        <>
          <label className="inline-field">
            from
            <input
              type="datetime-local"
              value={filter.from}
              onChange={(event) => onChange({ from: event.target.value.slice(0, 16) })}
            />
          </label>
          <label className="inline-field">
            until
            <input
              type="datetime-local"
              value={filter.until}
              onChange={(event) => onChange({ until: event.target.value.slice(0, 16) })}
            />
          </label>
        </>
      )}
    </>
  );
}
