import { expect, test } from "vitest";
import type { Attempt, RunNode } from "../../api/types";
import type { Box } from "../plan";
import { barsOf, isBusy } from "./bars";

const node = (more: Partial<RunNode>): RunNode => ({
  path: "a",
  alias: "a",
  kind: "step",
  children: 0,
  status: "completed",
  startedAt: 100,
  completedAt: 200,
  ...more,
});
const box = (kind: string) => ({ type: "step", node: { kind }, lanes: [] }) as unknown as Box;

test("a step that waited for a place shows it before its work", () => {
  expect(barsOf(node({ queueMs: 30 }), box("command"), 999)).toEqual([
    { kind: "queue", from: 70, to: 100 },
    { kind: "work", from: 100, to: 200 },
  ]);
});

test("attempts, and the waits between them, are told apart", () => {
  const attempts: Attempt[] = [
    { attempt: 1, outcome: "failed", startedAt: 100, completedAt: 110, queueMs: 0, dueAt: 140 },
    { attempt: 2, outcome: "failed", startedAt: 150, completedAt: 160, queueMs: 10, dueAt: 200 },
    { attempt: 3, outcome: "completed", startedAt: 200, completedAt: 230, queueMs: 0 },
  ];
  expect(
    barsOf(node({ attempt: 3, retryCount: 2 }), box("command"), 999, attempts).map(
      (bar) => `${bar.kind} ${bar.from}-${bar.to}`,
    ),
  ).toEqual(["failed 100-110", "retry 110-140", "queue 140-150", "failed 150-160", "retry 160-200", "work 200-230"]);
});

test("what goes on grows with the time", () => {
  expect(barsOf(node({ status: "running", completedAt: undefined }), box("command"), 150)).toEqual([
    { kind: "work", from: 100, to: 150, open: true },
  ]);
  const retrying = node({ status: "waiting_retry", completedAt: undefined, errorAt: 120, attempt: 1 });
  expect(barsOf(retrying, box("command"), 150)).toEqual([
    { kind: "work", from: 100, to: 120 },
    { kind: "retry", from: 120, to: 150, open: true },
  ]);
});

test("what is suspended waits for somebody", () => {
  const suspended = node({ status: "suspended", completedAt: undefined, errorAt: 120, attempt: 1 });
  const attempts: Attempt[] = [{ attempt: 1, outcome: "lost", startedAt: 100, completedAt: 118, queueMs: 0 }];
  expect(barsOf(suspended, box("call"), 150)).toEqual([
    { kind: "work", from: 100, to: 120 },
    { kind: "signal", from: 120, to: 150, open: true },
  ]);
  expect(barsOf(suspended, box("call"), 150, attempts)).toEqual([
    { kind: "lost", from: 100, to: 118 },
    { kind: "signal", from: 120, to: 150, open: true },
  ]);
});

test("delays and signals wait, and what waits is not busy", () => {
  const [timer] = barsOf(node({}), box("delay"), 999);
  const [signal] = barsOf(node({}), box("signal"), 999);
  expect([timer!.kind, signal!.kind]).toEqual(["timer", "signal"]);
  expect(isBusy(timer!)).toBe(false);
});

test("a supervisor is a frame around what is inside", () => {
  expect(barsOf(node({ kind: "forEach", children: 4 }), undefined, 999)[0]?.kind).toBe("inside");
});

test("work that took no time has a bar all the same", () => {
  expect(barsOf(node({ completedAt: 100, queueMs: 0 }), box("value"), 999)).toEqual([
    { kind: "work", from: 100, to: 100 },
  ]);
});

test("what has not begun has no bar", () => {
  expect(
    barsOf(node({ status: "pending", startedAt: undefined, completedAt: undefined }), box("command"), 999),
  ).toEqual([]);
});
