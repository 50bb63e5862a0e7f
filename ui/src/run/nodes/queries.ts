/* queries.ts: one node of a run, as it is asked for. */
import { api } from "../../api/client";

interface Asked {
  signal: AbortSignal;
}

/** With its values. */
export const nodeQuery = (runId: string, path: string) => ({
  queryKey: ["node", runId, path],
  queryFn: ({ signal }: Asked) => api.node(runId, path, signal),
});

/** Without them: when each attempt was, and how it ended. */
export const attemptsQuery = (runId: string, path: string) => ({
  queryKey: ["attempts", runId, path],
  queryFn: ({ signal }: Asked) => api.nodeAttempts(runId, path, signal),
});
