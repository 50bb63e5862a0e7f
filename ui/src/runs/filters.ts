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
  };
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
  };
}

export function isFiltered(filter: RunFilter): boolean {
  return Object.values(filter).some((value) => value !== "");
}
