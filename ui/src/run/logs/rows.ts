/* rows.ts: the lines of a log, with marks between them: where a new day begins, and the run's start and end. */
import type { LogLine, RunSummary } from "../../api/types";

export interface Mark {
  mark: "start" | "day" | "completed" | "failed" | "cancelled";
  key: string;
  text: string;
  /** failed: what it said */
  why?: string;
}

export type LogRow = Mark | { line: LogLine; key: number };

type Told = Pick<RunSummary, "createdAt" | "startedAt" | "completedAt" | "status" | "error">;

/** A day begins at a full quarter of an hour, everywhere. */
const QUARTER_MS = 15 * 60_000;
const nextQuarter = (at: number) => (Math.floor(at / QUARTER_MS) + 1) * QUARTER_MS;

/** `atEnd`: there is nothing behind these lines. createdAt 0: no marks for the run itself. */
export function rowsOf(lines: readonly LogLine[], run: Told, atEnd: boolean, dayOf: (at: number) => string): LogRow[] {
  const rows: LogRow[] = [];
  const started = run.startedAt ?? run.createdAt;
  let day = "";
  let until = 0; // when another day begins: asking for its name is slow
  if (started > 0) {
    day = dayOf(started);
    rows.push({ mark: "start", key: "start", text: `Started ${day}` });
  }
  for (const line of lines) {
    if (line.timestamp >= until || line.timestamp < until - QUARTER_MS) {
      const today = dayOf(line.timestamp);
      if (today !== day) rows.push({ mark: "day", key: `day ${line.id}`, text: today });
      day = today;
      until = nextQuarter(line.timestamp);
    }
    rows.push({ line, key: line.id });
  }
  const { status } = run;
  if (
    atEnd &&
    run.completedAt !== undefined &&
    (status === "completed" || status === "failed" || status === "cancelled")
  )
    rows.push({
      mark: status,
      key: "end",
      text: status[0]!.toUpperCase() + status.slice(1),
      ...(run.error && { why: run.error.message }),
    });
  return rows;
}
