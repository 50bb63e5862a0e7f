/* counts.ts: how many runs there are, by status: for the chips, and for "all that match". */
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Counts } from "../api/types";
import type { RunFilter } from "./filters";

const COUNT_MS = 5000;

export function useCounts() {
  return useQuery({ queryKey: ["counts"], queryFn: ({ signal }) => api.counts(signal), refetchInterval: COUNT_MS });
}

/** How many the filter finds, where counting by status is enough to know. */
export function countOf(filter: RunFilter, counts: Counts | undefined): number | undefined {
  if (!counts || filter.workflow || filter.q || filter.since || filter.from || filter.until) return undefined;
  if (filter.waiting) return counts.waiting;
  const { running, suspended, completed, failed, cancelled } = counts;
  return filter.status ? counts[filter.status] : running + suspended + completed + failed + cancelled;
}
