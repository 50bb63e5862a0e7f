/* Waits.tsx: why does it not go on? The server's own answer, kept fresh while the run is alive.
 *
 * What needs somebody has a row of its own, with its buttons. All else is one line that opens: it changes
 * all the time, and what is below it must not jump. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import type { JsonSchema, Wait } from "../api/types";
import { runPath } from "../app/paths";
import { useMayOperate } from "../app/session";
import { Icon, type IconName } from "../parts/Icon";
import { Loading } from "../parts/Loading";
import { formatAbsolute } from "../parts/time";
import { Duration, When } from "../parts/Time";
import { useFresh } from "../parts/useFresh";
import { SignalAnswer } from "./RunActions";
import { isTerminal, useRunEvents, useRunLive } from "./live";
import { count } from "./nodes/names";
import { useRunPlan } from "./nodes/shared";
import { boxAt } from "./plan";
import { tabIn } from "./tabNames";

/* Forms are large. */
const SignalFields = lazy(() => import("./SignalFields").then((module) => ({ default: module.SignalFields })));

const REASON_ICON: Record<string, IconName> = {
  running: "play",
  place: "list",
  concurrency: "list",
  turn: "list",
  limit: "list",
  timer: "clock",
  retry: "retry",
  signal: "bell",
  handle: "bell",
  worker: "question",
};

/** In the one line: so many of them do this. */
const REASON_TEXT: Record<string, string> = {
  running: "running",
  place: "waiting for a place",
  concurrency: "waiting for their turn",
  turn: "waiting for their turn",
  limit: "waiting for a limit",
  timer: "waiting for a time",
  retry: "waiting to retry",
  handle: "waiting for an answer",
  worker: "waiting for a worker",
  paused: "paused",
};

/** Asked again at most this often, however much happens. */
const ASK_MS = 1000;

/* A decision has its own place, with what is known of what failed. */
const Decisions = lazy(() => import("./stages/Decisions").then((module) => ({ default: module.Decisions })));

export function Waits() {
  const { runId, run } = useRunLive();
  const alive = !isTerminal(run.status);
  const { data, isFetching, refetch } = useQuery({
    queryKey: ["why", runId],
    queryFn: ({ signal }) => api.why(runId, signal),
    enabled: alive,
  });

  const ask = useFresh(
    isFetching,
    () => {
      if (alive) void refetch();
    },
    ASK_MS,
  );
  useRunEvents({
    onEvents: (events) => {
      if (events.some((event) => event.kind !== "log")) ask();
    },
    onOpen: ask,
  });

  const waits = alive ? (data?.waits ?? []) : [];
  const people = waits.filter((wait) => wait.reason === "signal");
  const others = waits.filter((wait) => wait.reason !== "signal" && wait.reason !== "decision");
  const suspended = run.status === "suspended" && (run.suspensions?.length ?? 0) > 0;
  return (
    <section
      className={run.status === "suspended" ? "waits suspended" : "waits"}
      aria-label={run.status === "suspended" ? "Waits for a decision" : "Now"}
    >
      {suspended && (
        <Suspense fallback={<Loading what="what waits" />}>
          <Decisions run={run} />
        </Suspense>
      )}
      {people.length > 0 && (
        <ul>
          {people.map((wait) => (
            <WaitRow key={keyOf(wait)} wait={wait} />
          ))}
        </ul>
      )}
      {((people.length === 0 && !suspended) || others.length > 0) && (
        <Line waits={others} ended={alive ? undefined : (run.completedAt ?? undefined)} />
      )}
    </section>
  );
}

const keyOf = (wait: Wait) => `${wait.reason} ${wait.step ?? ""} ${wait.name ?? ""}`;

/** One line, whatever happens; opened, a row for each reason. */
function Line({ waits, ended }: { waits: Wait[]; ended: number | undefined }) {
  const [open, setOpen] = useState(false);
  if (ended !== undefined) return <p className="waits-line muted">Ended {formatAbsolute(ended)}</p>;
  if (waits.length === 0) return <p className="waits-line muted">…</p>;
  if (waits.length === 1)
    return (
      <ul>
        <WaitRow wait={waits[0]!} />
      </ul>
    );
  return (
    <details className="waits-more" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="waits-line">{summaryOf(waits)}</summary>
      {open && (
        <ul>
          {waits.map((wait) => (
            <WaitRow key={keyOf(wait)} wait={wait} />
          ))}
        </ul>
      )}
    </details>
  );
}

/** "8 running · 992 waiting for a place" */
function summaryOf(waits: Wait[]): string {
  const sums = new Map<string, number>();
  for (const wait of waits) {
    const text = REASON_TEXT[wait.reason] ?? wait.reason;
    sums.set(text, (sums.get(text) ?? 0) + wait.count);
  }
  return [...sums].map(([text, n]) => `${count(n)} ${text}`).join(" · ");
}

function WaitRow({ wait }: { wait: Wait }) {
  const { run } = useRunLive();
  const mayOperate = useMayOperate();
  const schema = useSignalSchema(wait);
  return (
    <li className={`wait wait-${wait.reason}`}>
      {mayOperate && wait.reason === "signal" && wait.name && schema === undefined && (
        <SignalAnswer run={run} name={wait.name} />
      )}
      <span className="wait-icon">
        <Icon name={REASON_ICON[wait.reason] ?? "clock"} />
      </span>
      <span className="wait-text">
        <WaitText wait={wait} />
        {wait.reason === "worker" && "; once it is there, the run goes on by itself"}
        <span className="muted wait-times">
          {wait.since !== undefined && (
            <>
              for <Duration from={wait.since} to={undefined} />
            </>
          )}
          {wait.dueAt !== undefined && (
            <>
              {wait.since !== undefined && " · "}
              {wait.reason === "signal" || wait.reason === "handle" ? "gives up" : "due"} <When at={wait.dueAt} />
            </>
          )}
          {wait.count > 1 && ` · ${count(wait.count)} of them`}
        </span>
      </span>
      {mayOperate && wait.name && schema !== undefined && (
        <Suspense fallback={<Loading what="the form" />}>
          <SignalFields run={run} name={wait.name} schema={schema} />
        </Suspense>
      )}
    </li>
  );
}

/** What an answer has to be, as the tool that asks says it, or the plan; undefined: anything. */
function useSignalSchema(wait: Wait): JsonSchema | undefined {
  const { plan } = useRunPlan();
  const path = wait.nodes[0]?.path;
  if (wait.reason !== "signal" || path === undefined) return undefined;
  const asked = wait.nodes[0]?.asks?.schema;
  if (asked) return asked as JsonSchema;
  return (boxAt(plan.boxes, path)?.node.with as { schema?: JsonSchema } | undefined)?.schema;
}

/** In the server's words; the name of what waits leads to its card (of several: the first). */
function WaitText({ wait }: { wait: Wait }) {
  const { runId } = useRunLive();
  const [location] = useLocation();
  const path = wait.nodes[0]?.path;
  const text = wait.cause?.message ?? wait.message;
  const name = `'${wait.step ?? ""}'`;
  if (!path || !text.startsWith(name)) return text;
  return (
    <>
      <Link href={runPath(runId, `/${tabIn(location)}?${new URLSearchParams({ node: path }).toString()}`)}>{name}</Link>
      {text.slice(name.length)}
    </>
  );
}
