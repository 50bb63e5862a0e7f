import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { WorkflowSummary } from "../api/types";
import { useTitle } from "../app/title";
import { Empty } from "../parts/Empty";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { SearchField } from "../parts/SearchField";
import "./workflows.css";

/** Enough of them to be worth a search field. */
const MANY = 8;

export function WorkflowsPage() {
  useTitle("Workflows");
  const [text, setText] = useState("");
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["workflows"],
    queryFn: ({ signal }) => api.workflows(signal),
    refetchInterval: 10_000, // files may come and go while the server watches them
  });
  if (isPending) return <Loading what="the workflows" />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;

  const all = data.workflows;
  const wanted = text.trim().toLowerCase();
  const shown = all.filter((w) => `${w.name}\n${w.description ?? ""}`.toLowerCase().includes(wanted));
  return (
    <div className="page">
      <div className="page-head">
        <div>
          <h1>Workflows</h1>
          <p className="muted">What this server can run. Choose one to launch it.</p>
        </div>
        {all.length >= MANY && <SearchField label="Search workflows" value={text} onChange={setText} />}
      </div>
      {all.length === 0 ? (
        <NoWorkflows />
      ) : shown.length === 0 ? (
        <Empty icon="search" title={`No workflow matches “${text.trim()}”`}>
          <button className="button" onClick={() => setText("")}>
            Show all {all.length}
          </button>
        </Empty>
      ) : (
        <ul className="workflow-list">
          {shown.map((workflow) => (
            <li key={workflow.name}>
              <Card workflow={workflow} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Card({ workflow }: { workflow: WorkflowSummary }) {
  const href = `/workflows/${encodeURIComponent(workflow.name)}`;
  const steps = workflow.stepCount;
  return (
    <article className="card workflow-card">
      <h2>
        <Link href={href}>{workflow.name}</Link>
      </h2>
      <p className="muted">{workflow.description ?? ""}</p>
      <div className="workflow-facts">
        {steps !== undefined && <span>{steps === 1 ? "1 step" : `${steps} steps`}</span>}
        <span className="mono" title={`version ${workflow.version}`}>
          {workflow.version.slice(0, 8)}
        </span>
        <Link href={`/runs?workflow=${encodeURIComponent(workflow.name)}`} aria-label={`Runs of ${workflow.name}`}>
          Runs
        </Link>
      </div>
    </article>
  );
}

function NoWorkflows() {
  return (
    <Empty icon="workflow" title="No workflows yet">
      <p>
        The server runs the workflow files it was started with. Make one and serve its folder; with <code>--watch</code>{" "}
        new files appear here by themselves.
      </p>
      <pre>
        <code>{"rival new hello          # writes hello.yaml\nrival serve . --watch"}</code>
      </pre>
    </Empty>
  );
}
