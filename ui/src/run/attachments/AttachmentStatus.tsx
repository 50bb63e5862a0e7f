import type { Attachment, NodeStatus } from "../../api/types";
import { StatusIcon } from "../../parts/StatusBadge";

/** The same shapes and colours as those of nodes. */
const LOOKS_LIKE: Record<Attachment["status"], NodeStatus> = {
  init: "pending",
  running: "running",
  finished: "completed",
  errored: "failed",
  skipped: "skipped",
};

export function AttachmentStatus({ attachment }: { attachment: Attachment }) {
  const status = LOOKS_LIKE[attachment.status] ?? "pending";
  return (
    <>
      <span className={`badge status-${status}`}>
        <StatusIcon status={status} size={14} />
        {attachment.status}
      </span>
      {attachment.superseded && <span className="attachment-superseded">superseded</span>}
    </>
  );
}
