/* queries.ts: attachments, as they are asked for, and the address of one. */
import { api } from "../../api/client";
import { runPath } from "../../app/paths";

interface Asked {
  signal: AbortSignal;
}

/** `<stage>:<state>` */
function partsOf(path: string): { stage: string; state: string } {
  const colon = path.indexOf(":");
  return { stage: path.slice(0, colon), state: path.slice(colon + 1) };
}

/** Those of one state: an attempt each. */
export const attachmentsOfState = (runId: string, path: string) => ({
  queryKey: ["attachments", runId, path],
  queryFn: ({ signal }: Asked) => api.attachments(runId, { ...partsOf(path), limit: 1000 }, signal),
});

/** With its result or error, which it has once it is complete. */
export const attachmentQuery = (runId: string, id: string, completedAt?: number | null) => ({
  queryKey: ["attachment", runId, id, completedAt],
  queryFn: ({ signal }: Asked) => api.attachment(runId, id, signal),
});

export const attachmentPath = (runId: string, id: string) =>
  runPath(runId, `/attachments?${new URLSearchParams({ attachment: id }).toString()}`);
