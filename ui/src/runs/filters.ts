/* filters.ts: which runs are shown, as it stands in the address. */
import type { RunQuery } from "../api/client";
import { RUN_STATUSES, type RunStatus } from "../api/types";
import { parseSpan } from "../parts/time";

export interface RunFilter {
  status: RunStatus | "";
  workflow: string;
  q: string;
  /** "1h", "24h", "7d": begun since then */
  since: string;
  /** "2026-11-17T09:30", as the reader's clock says: begun at or after, and before */
  from: string;
  until: string;
  /** "somebody": those that wait for a signal or a decision */
  waiting: "somebody" | "";
  /** what this is called (views.ts) */
  view: string;
}

export const SPANS: [string, string][] = [
  ["", "any time"],
  ["15m", "last 15 minutes"],
  ["1h", "last hour"],
  ["24h", "last 24 hours"],
  ["7d", "last 7 days"],
  ["30d", "last 30 days"],
];

export function readFilter(params: URLSearchParams): RunFilter {
  const status = params.get("status") ?? "";
  const since = params.get("since") ?? "";
  return {
    status: RUN_STATUSES.find((each) => each === status) ?? "",
    workflow: params.get("workflow") ?? "",
    q: params.get("q") ?? "",
    since: parseSpan(since) === undefined ? "" : since,
    from: momentIn(params, "from"),
    until: momentIn(params, "until"),
    waiting: params.get("waiting") === "somebody" ? "somebody" : "",
    view: params.get("view") ?? "",
  };
}

/** A day and a time, as a field for them has it. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;

function momentIn(params: URLSearchParams, name: string): string {
  const text = params.get(name) ?? "";
  return MOMENT.test(text) && !Number.isNaN(Date.parse(text)) ? text : "";
}

/** As such a field wants it, by the reader's clock. */
export function momentOf(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function writeFilter(filter: RunFilter): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value) params.set(name, value as string);
  return params;
}

/** Whole minutes: the address of a page of results stays the same for a while. */
const ROUND_MS = 60_000;

export function queryOf(filter: RunFilter, now: number): RunQuery {
  const span = parseSpan(filter.since);
  return {
    ...(filter.status && { status: filter.status }),
    ...(filter.workflow && { workflow: filter.workflow }),
    ...(filter.q.trim() && { q: filter.q.trim() }),
    ...(span !== undefined && { since: Math.floor((now - span) / ROUND_MS) * ROUND_MS }),
    ...(filter.waiting && { waiting: filter.waiting }),
    ...(filter.from && { since: Date.parse(filter.from) }),
    ...(filter.until && { until: Date.parse(filter.until) }),
  };
}

export function isFiltered(filter: RunFilter): boolean {
  return Object.entries(filter).some(([name, value]) => name !== "view" && value !== "");
}
