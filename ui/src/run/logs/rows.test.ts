import { expect, test } from "vitest";
import type { LogLine } from "../../api/types";
import { rowsOf, type LogRow } from "./rows";

const line = (id: number, timestamp: number): LogLine => ({
  id,
  timestamp,
  level: "info",
  message: "m",
  runId: "r",
  stepName: "s",
  path: "s",
  attempt: 1,
});
const DAY = 86_400_000;
const day = (at: number) => `day ${Math.floor(at / DAY)}`;
const shown = (rows: LogRow[]) => rows.map((row) => ("mark" in row ? `${row.mark}: ${row.text}` : row.line.id));

test("days that begin are told, and the run's start and end", () => {
  const run = {
    createdAt: 100,
    startedAt: 150,
    completedAt: 2.5 * DAY,
    status: "failed",
    error: { message: "no" },
  } as const;
  const lines = [line(1, 200), line(2, DAY - 1), line(3, DAY), line(4, 2.1 * DAY)];
  expect(shown(rowsOf(lines, run, true, day))).toEqual([
    "start: Started day 0",
    1,
    2,
    "day: day 1",
    3,
    "day: day 2",
    4,
    "failed: Failed",
  ]);
  expect(shown(rowsOf(lines, run, false, day)).at(-1)).toBe(4);
});

test("of a part of the log only the days", () => {
  expect(shown(rowsOf([line(1, 200)], { createdAt: 0, status: "running" }, true, day))).toEqual(["day: day 0", 1]);
});
