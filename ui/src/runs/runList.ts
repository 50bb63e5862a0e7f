/* runList.ts: the list of runs as far as it was read, kept fresh. Pure: useRunList.ts does the asking.
 *
 * The rows are a prefix of what the server would list, newest first, without gaps. Two things keep it so:
 * the first page is read again and put over the old one, and events change rows that are there. */
import type { FeedEvent, RunPageOf, RunStatus, RunSummary } from "../api/types";

export interface RunRows {
  rows: readonly RunSummary[];
  /** Where the next page begins; null: there is none. */
  cursor: string | null;
}

export const NO_ROWS: RunRows = { rows: [], cursor: null };

/** Put a newly read first page over what is there. Rows behind it stay, if it joins on to them. */
export function withHead(list: RunRows, page: RunPageOf): RunRows {
  const last = page.runs.at(-1);
  if (last && page.nextCursor !== null) {
    const joint = list.rows.findIndex((row) => row.runId === last.runId);
    if (joint >= 0)
      return {
        rows: [...page.runs, ...list.rows.slice(joint + 1)],
        cursor: joint + 1 < list.rows.length ? list.cursor : page.nextCursor,
      };
  }
  return { rows: page.runs, cursor: page.nextCursor };
}

/** Put the page that `cursor` named behind what is there. */
export function withNext(list: RunRows, page: RunPageOf): RunRows {
  const known = new Set(list.rows.map((row) => row.runId));
  return { rows: [...list.rows, ...page.runs.filter((run) => !known.has(run.runId))], cursor: page.nextCursor };
}

const ENDS: Record<string, RunStatus> = {
  "run.completed": "completed",
  "run.failed": "failed",
  "run.cancelled": "cancelled",
};
const CHANGES: Record<string, RunStatus> = { ...ENDS, "run.suspended": "suspended", "run.resumed": "running" };

/** What the events say about rows that are there; `news`: some were about others. */
export function withEvents(list: RunRows, events: readonly FeedEvent[]): { list: RunRows; news: boolean } {
  const newest = new Map<string, FeedEvent>();
  let news = false;
  for (const event of events) {
    if (event.kind === "run.started") news = true;
    else if (event.kind in CHANGES) newest.set(event.runId, event);
  }
  if (newest.size === 0) return { list, news };
  let changed = false;
  const rows = list.rows.map((row) => {
    const event = newest.get(row.runId);
    const status = event && CHANGES[event.kind];
    if (!event || !status) return row;
    newest.delete(row.runId);
    if (row.status === status) return row;
    changed = true;
    const next: RunSummary = { ...row, status };
    if (event.kind in ENDS) {
      next.completedAt = event.at;
      if (row.startedAt) next.duration = event.at - row.startedAt;
    }
    if (event.error) next.error = event.error;
    next.suspension = event.reason;
    return next;
  });
  return { list: changed ? { rows, cursor: list.cursor } : list, news: news || newest.size > 0 };
}
