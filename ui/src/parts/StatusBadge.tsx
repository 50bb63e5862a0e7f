/* StatusBadge.tsx: a status by word, shape and colour: any two of them would do.
 *
 * The shapes differ in outline, not only in what is inside, so that they stay apart at 12 pixels and
 * without colour. */
import type { Status } from "../api/types";

interface Look {
  name: string;
  /** the outline, filled with the status colour */
  shape: string;
  /** what is drawn on it */
  glyph: string;
  hollow?: boolean;
}

const CIRCLE = "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13";
const OCTAGON = "M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z";
const SQUARE = "M3.5 2h9A1.5 1.5 0 0 1 14 3.5v9a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 12.5v-9A1.5 1.5 0 0 1 3.5 2";
const DIAMOND = "M8 .8 15.2 8 8 15.2.8 8z";

export const STATUS_LOOK: Record<Status, Look> = {
  pending: { name: "pending", shape: CIRCLE, glyph: "", hollow: true },
  running: { name: "running", shape: CIRCLE, glyph: "M6.5 5.2v5.6L11 8z" },
  waiting_retry: { name: "waiting to retry", shape: DIAMOND, glyph: "M10.6 8a2.6 2.6 0 1 1-.9-2M10 4.3V6.2H8.2" },
  suspended: { name: "suspended", shape: SQUARE, glyph: "M6.2 5.5v5M9.8 5.5v5" },
  completed: { name: "completed", shape: CIRCLE, glyph: "M5 8.3l2.2 2.2L11.2 6" },
  failed: { name: "failed", shape: OCTAGON, glyph: "M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4" },
  cancelled: { name: "cancelled", shape: CIRCLE, glyph: "M4.5 11.5l7-7", hollow: true },
  skipped: { name: "skipped", shape: "", glyph: "M3 4.5v7L7.5 8zM8 4.5v7L12.5 8zM13.5 4.5v7" },
};

export function StatusIcon({ status, size = 16 }: { status: Status; size?: number }) {
  const look = STATUS_LOOK[status] ?? STATUS_LOOK.pending;
  return (
    <svg
      className={`status-icon status-${status}${look.hollow ? " hollow" : ""}`}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
    >
      {look.shape && <path className="status-shape" d={look.shape} />}
      {look.glyph && <path className="status-glyph" d={look.glyph} />}
    </svg>
  );
}

export function StatusBadge({ status, size }: { status: Status; size?: "large" }) {
  return (
    <span className={`badge status-${status}${size ? ` ${size}` : ""}`}>
      <StatusIcon status={status} size={size === "large" ? 18 : 14} />
      {STATUS_LOOK[status]?.name ?? status}
    </span>
  );
}
