/* Waits.tsx: why does it not go on? The server's own answer, kept fresh while the run is alive. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import type { Wait } from "../api/types";
import { useMayOperate } from "../app/session";
import { Icon, type IconName } from "../parts/Icon";
import { Duration, When } from "../parts/Time";
import { useFresh } from "../parts/useFresh";
import { isTerminal, useRunEvents, useRunLive } from "./live";
import { DecideButtons, SignalDialog } from "./RunActions";

const REASON_ICON: Record<string, IconName> = {
  running: "play",
  place: "list",
  concurrency: "list",
  timer: "clock",
  retry: "retry",
  signal: "bell",
  handle: "bell",
  worker: "question",
  decision: "question",
};

/** Asked again at most this often, however much happens. */
const ASK_MS = 1000;

export function Waits() {
  const { runId, run } = useRunLive();
  const alive = !isTerminal(run.status);
  const { data, isFetching, refetch } = useQuery({ queryKey: ["why", runId], queryFn: ({ signal }) => api.why(runId, signal), enabled: alive });

  const ask = useFresh(isFetching, () => {
    if (alive) void refetch();
  }, ASK_MS);
  useRunEvents({
    onEvents: (events) => {
      if (events.some((event) => event.kind !== "log")) ask();
    },
    onOpen: ask,
  });

  if (!alive || !data || data.waits.length === 0) return null;
  return (
    <section className={run.status === "suspended" ? "waits suspended" : "waits"} aria-labelledby="waits-title">
      <h2 id="waits-title" className="waits-title">
        {run.status === "suspended" ? "Waits for a decision" : "Now"}
      </h2>
      <ul>
        {data.waits.map((wait) => (
          <WaitRow key={`${wait.reason} ${wait.step ?? ""} ${wait.name ?? ""}`} wait={wait} />
        ))}
      </ul>
    </section>
  );
}

function WaitRow({ wait }: { wait: Wait }) {
  const { run } = useRunLive();
  const mayOperate = useMayOperate();
  const [signalling, setSignalling] = useState(false);
  return (
    <li className={`wait wait-${wait.reason}`}>
      <span className="wait-icon">
        <Icon name={REASON_ICON[wait.reason] ?? "clock"} />
      </span>
      <span className="wait-text">
        {wait.cause?.message ?? wait.message}
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
          {wait.count > 1 && ` · ${wait.count.toLocaleString("en")} of them`}
        </span>
      </span>
      {mayOperate && wait.reason === "signal" && wait.name && (
        <>
          <button className="button primary small" onClick={() => setSignalling(true)}>
            Answer…
          </button>
          <SignalDialog run={run} name={wait.name} open={signalling} onClose={() => setSignalling(false)} />
        </>
      )}
      {mayOperate && wait.reason === "decision" && <DecideButtons run={run} />}
    </li>
  );
}
