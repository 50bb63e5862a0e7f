/* live.ts: one run, as the tabs of its page share it: its document, and its feed.
 *
 * One stream is open for the page, however many tabs listen. The document is read anew when the run's
 * own status changes and when a stream begins; nodes, logs and waits are each tab's own business. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useMemo, useRef } from "react";
import { api } from "../api/client";
import { useFeed } from "../api/useFeed";
import type { FeedEvent, Run } from "../api/types";
import { useFresh } from "../parts/useFresh";

/** A run changes its status a few times; should it do so often, it is read at most this often. */
const READ_MS = 200;

export interface RunListener {
  /** What happened, in order, each event once. */
  onEvents?: (events: FeedEvent[]) => void;
  /** A stream has begun: what is known may be old, read it anew. */
  onOpen?: () => void;
}

export interface RunLive {
  runId: string;
  run: Run;
  listen: (listener: RunListener) => () => void;
}

export const RunLiveContext = createContext<RunLive | null>(null);

export function useRunLive(): RunLive {
  const live = useContext(RunLiveContext);
  if (!live) throw new Error("useRunLive is for parts of the run page");
  return live;
}

/** Hear what happens in the run while the component is there; the newest handlers are called. */
export function useRunEvents(listener: RunListener): void {
  const { listen } = useRunLive();
  const newest = useRef(listener);
  useEffect(() => {
    newest.current = listener;
  });
  useEffect(
    () => listen({ onEvents: (events) => newest.current.onEvents?.(events), onOpen: () => newest.current.onOpen?.() }),
    [listen],
  );
}

/** For the page itself: read the run, follow it, and hand both to the tabs. */
export function useRunSource(runId: string): { query: UseQueryResult<Run>; live: RunLive | null } {
  const listeners = useRef(new Set<RunListener>());
  const query = useQuery({ queryKey: ["run", runId], queryFn: ({ signal }) => api.run(runId, signal) });

  const reread = useFresh(query.isFetching, () => void query.refetch(), READ_MS);
  useFeed({
    runId,
    logs: true,
    onEvents(events) {
      if (events.some((event) => event.kind.startsWith("run."))) reread();
      for (const listener of listeners.current) listener.onEvents?.(events);
    },
    onOpen() {
      reread();
      for (const listener of listeners.current) listener.onOpen?.();
    },
  });

  const listen = useCallback((listener: RunListener) => {
    listeners.current.add(listener);
    return () => listeners.current.delete(listener);
  }, []) as RunLive["listen"];
  const run = query.data;
  const live = useMemo(() => (run ? { runId, run, listen } : null), [runId, run, listen]);
  return { query, live };
}

export function isTerminal(status: Run["status"]): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
