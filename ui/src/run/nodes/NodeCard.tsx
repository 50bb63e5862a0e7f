/* NodeCard.tsx: one node with all that is known of it. */
import { useQuery } from "@tanstack/react-query";
import { Fragment, useEffect, type ReactNode } from "react";
import { ApiError } from "../../api/client";
import type { Attempt, RunNodeDetail } from "../../api/types";
import { CopyButton } from "../../parts/CopyButton";
import { ErrorBlock } from "../../parts/ErrorBlock";
import { Failure } from "../../parts/Failure";
import { Icon } from "../../parts/Icon";
import { JsonView } from "../../parts/JsonView";
import { lastLine } from "../../parts/lastLine";
import { Loading } from "../../parts/Loading";
import { StatusBadge, StatusIcon } from "../../parts/StatusBadge";
import { formatClock, formatDuration } from "../../parts/time";
import { Duration, When } from "../../parts/Time";
import { useFresh } from "../../parts/useFresh";
import { useRunEvents, useRunLive } from "../live";
import { boxAt, dependenciesOf, isIterated, isSupervisor, priorityOf, wayText, type Box } from "../plan";
import { StateAttachments } from "../attachments/StateAttachments";
import { IterationTable } from "./IterationTable";
import { count, kindNameOf, titleOf } from "./names";
import { NodeLog } from "./NodeLog";
import { progressText } from "./progress";
import { nodeQuery } from "./queries";
import { useRunPlan, useSelected } from "./shared";

/** However much happens in it, it is read at most this often. */
const READ_MS = 800;

/** The node's document, kept fresh. */
export function useNodeDetail(path: string) {
  const { runId } = useRunLive();
  const query = useQuery(nodeQuery(runId, path));
  const read = useFresh(query.isFetching, () => void query.refetch(), READ_MS);
  useRunEvents({
    onEvents: (events) => {
      if (
        events.some(
          (event) =>
            event.kind !== "log" &&
            (event.path === path || event.path?.startsWith(`${path}:`) || event.kind.startsWith("run.")),
        )
      )
        read();
    },
    onOpen: read,
  });
  return query;
}

export function NodeCard({ path, onClose }: { path: string; onClose: () => void }) {
  const { data: node, error, refetch } = useNodeDetail(path);
  const { plan } = useRunPlan();
  const box = boxAt(plan.boxes, path);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) onClose();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  });
  const gone = error instanceof ApiError && error.status === 404;
  return (
    <aside className="card node-card" aria-label={`Node ${path}`} tabIndex={-1}>
      <header className="node-card-head">
        <div>
          <h2 className="node-card-title">{node ? titleOf(node) : path.slice(path.lastIndexOf(":") + 1)}</h2>
          {node && (
            <p className="node-card-status">
              <StatusBadge status={node.status} />
              <span className="kind">{kindNameOf(node, box)}</span>
            </p>
          )}
        </div>
        <button className="button quiet small icon-only" onClick={onClose} aria-label="Close the card">
          <Icon name="close" />
        </button>
      </header>
      {error && !node ? (
        gone ? (
          <p className="muted">The run has no node at {path} (yet).</p>
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : !node ? (
        <Loading what="the node" />
      ) : (
        <Body node={node} box={box} />
      )}
    </aside>
  );
}

function Body({ node, box }: { node: RunNodeDetail; box: Box | undefined }) {
  const attempts = node.attempts;
  const { plan } = useRunPlan();
  const [, select] = useSelected();
  const facts: [string, ReactNode][] = [];
  if (node.startedAt !== undefined) {
    facts.push(["Started", <When key="s" at={node.startedAt} />]);
    facts.push([
      node.completedAt === undefined ? "For" : "Took",
      <Duration key="d" from={node.startedAt} to={node.completedAt} />,
    ]);
  }
  if (node.queueMs) facts.push(["Queued", formatDuration(node.queueMs)]);
  if (node.attempt) facts.push(["Attempts", count(node.attempt)]);
  if (node.crashes) facts.push(["Crashes", count(node.crashes)]);
  if (node.dueAt !== undefined)
    facts.push([node.status === "waiting_retry" ? "Tried again" : "Due", <When key="u" at={node.dueAt} />]);
  if (box?.state && box.key === node.path) {
    const on = dependenciesOf(box);
    facts.push(["Priority", count(priorityOf(box))]);
    if (box.state.agentId) facts.push(["Agent", box.state.agentId]);
    if (on.length > 0) facts.push(["Depends on", on.map((key) => wayText(plan.boxes, key)).join(", ")]);
    if (box.state.onFailure) facts.push(["On failure", box.state.onFailure]);
  }
  const progress = progressText(node);
  if (progress) facts.push(["Iterations", progress]);
  const isStep = node.kind === "step" || node.kind === "handler";
  const isStopped = node.status === "failed" || node.status === "suspended";
  return (
    <div className="node-card-body">
      {node.description && <p className="node-card-description">{node.description}</p>}
      {node.status === "pending" && <p className="muted">It has not begun yet.</p>}
      {facts.length > 0 && (
        <dl className="node-facts">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {node.error && (isStopped || attempts.length < 2) && (
        <ErrorBlock
          label={errorTitle(node)}
          text={node.error.message}
          tone={node.status === "suspended" ? "suspended" : isStopped ? "failed" : "past"}
        >
          {node.error.stack && (
            <details>
              <summary>Stack</summary>
              <pre>{node.error.stack}</pre>
            </details>
          )}
        </ErrorBlock>
      )}
      {box && isIterated(box) && Boolean(node.children) && node.kind !== "iteration" && (
        <section aria-label="Iterations">
          <h3>Iterations</h3>
          <IterationTable owner={node} onPick={(iteration) => select(`${node.path}:iter${iteration}`)} />
        </section>
      )}
      <Value title="Input" value={node.input ?? attempts.at(-1)?.input} />
      {node.status !== "skipped" && <Value title="Result" value={node.result} />}
      {(attempts.length > 1 || Boolean(node.earlierAttempts)) && (
        <Attempts attempts={attempts} earlier={node.earlierAttempts ?? 0} />
      )}
      {(isStep || box?.state || node.kind === "iteration") && node.status !== "pending" && (
        <NodeLog
          path={node.path}
          fatal={node.status === "failed" ? node.errorAttempt : node.status === "suspended" ? "last" : undefined}
        />
      )}
      {box?.state && box.key === node.path && node.status !== "pending" && <StateAttachments path={node.path} />}
      {node.state && Object.keys(node.state).length > 0 && <Value title="State" value={node.state} />}
      {box && !isSupervisor(box) && (
        <details className="node-definition">
          <summary>Definition</summary>
          <JsonView value={box.node as never} label="the definition" />
        </details>
      )}
      <dl className="node-path">
        <dt className="sr-only">Path</dt>
        <dd>
          <span className="mono">{node.path}</span>
          <CopyButton text={node.path} what="the path" />
        </dd>
      </dl>
    </div>
  );
}

function errorTitle(node: RunNodeDetail): string {
  if (node.status === "failed") return "Error";
  return node.status === "suspended" ? "Why it is suspended" : `Error in attempt ${node.errorAttempt ?? "?"}`;
}

function Value({ title, value }: { title: string; value: RunNodeDetail["result"] }) {
  if (value === undefined) return null;
  return (
    <section className="node-value">
      <h3>{title}</h3>
      <JsonView value={value} label={`the ${title.toLowerCase()}`} />
    </section>
  );
}

const OUTCOME = {
  running: "running",
  completed: "completed",
  failed: "failed",
  skipped: "skipped",
  cancelled: "cancelled",
  lost: "failed",
} as const;

function Attempts({ attempts, earlier }: { attempts: Attempt[]; earlier: number }) {
  return (
    <section className="node-attempts">
      <h3>Attempts</h3>
      {earlier > 0 && <p className="muted">{count(earlier)} before these</p>}
      <ol>
        {attempts.map((attempt, i) => (
          <Fragment key={i}>
            <li>
              <StatusIcon status={OUTCOME[attempt.outcome as keyof typeof OUTCOME] ?? "pending"} size={14} />
              <span className="node-attempt-name">
                {attempt.attempt}. {attempt.outcome === "lost" ? "lost with its process" : attempt.outcome}
              </span>
              <span className="muted tabular">
                {attempt.startedAt !== undefined && formatClock(attempt.startedAt)}
                {attempt.startedAt !== undefined &&
                  attempt.completedAt !== undefined &&
                  ` · ${formatDuration(attempt.completedAt - attempt.startedAt)}`}
                {Boolean(attempt.queueMs) && ` · queued ${formatDuration(attempt.queueMs!)}`}
              </span>
              {attempt.error && <span className="node-attempt-error">{lastLine(attempt.error.message)}</span>}
              {attempt.input !== undefined && i < attempts.length - 1 && (
                <details className="node-attempt-input">
                  <summary>What it got</summary>
                  <JsonView value={attempt.input} label={`the input of attempt ${attempt.attempt}`} />
                </details>
              )}
            </li>
            {attempt.dueAt !== undefined && attempt.completedAt !== undefined && (
              <li className="node-attempt-wait muted">waits {formatDuration(attempt.dueAt - attempt.completedAt)}</li>
            )}
          </Fragment>
        ))}
      </ol>
    </section>
  );
}
