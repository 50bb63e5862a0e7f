/* acts.ts: what somebody did in the run: started, signalled, decided, cancelled it. */
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { FeedEvent } from "../api/types";
import { lastLine } from "../parts/lastLine";
import { useFresh } from "../parts/useFresh";
import { useRunEvents } from "./live";

/** Events that the server looks through for one answer. */
const PAGE = 10_000;
/** So many answers at most: History has all of a longer run. */
const PAGES = 20;
const READ_MS = 500;

async function readActs(runId: string, signal: AbortSignal): Promise<FeedEvent[]> {
  const acts: FeedEvent[] = [];
  let after: string | undefined;
  for (let i = 0; i < PAGES; i++) {
    const page = await api.history(runId, { after, by: 1, limit: PAGE }, signal);
    acts.push(...page.events);
    if (!page.more || !page.next) break;
    after = page.next;
  }
  return acts;
}

/** The events with `by`, in order. */
export function useActs(runId: string): FeedEvent[] {
  const query = useQuery({ queryKey: ["acts", runId], queryFn: ({ signal }) => readActs(runId, signal) });
  const read = useFresh(query.isFetching, () => void query.refetch(), READ_MS);
  useRunEvents({
    onEvents: (events) => {
      if (events.some((event) => event.by !== undefined)) read();
    },
    onOpen: read,
  });
  return query.data ?? [];
}

export const isStart = (event: FeedEvent) => event.kind === "run.started";

const DECIDED: Record<string, string> = {
  resume: "Resumed",
  skip: "Skipped",
  restart_stage: "Stage begun anew",
  abort: "Aborted",
};

/** "Skipped triage › prepare by ana: nobody needs it". `way`: a path as people say it. */
export function sayingOfAct(event: FeedEvent, way: (path: string) => string): string {
  const at = event.path ? ` ${way(event.path)}` : "";
  const reason = event.reason?.cause && event.reason.message ? `: ${lastLine(event.reason.message)}` : "";
  const by = ` by ${event.by}`;
  switch (event.kind) {
    case "run.started":
      return `Started${by}`;
    case "run.cancelling":
    case "run.cancelled":
      return `Cancelled${by}`;
    case "run.resumed":
      return `${DECIDED[event.decision ?? "resume"]}${at}${by}${reason}`;
    case "run.aborted":
      return `Aborted${at}${by}${reason}`;
    case "signal.received":
      return `Signal “${event.name ?? ""}”${by}`;
    default:
      return `Completed${at}${by}`;
  }
}
