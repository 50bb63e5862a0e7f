import { expect, test } from "vitest";
import type { FeedEvent, RunNode } from "../../api/types";
import { byPath, fold, parentsOf } from "./fold";

const event = (kind: string, at: number, more: Partial<FeedEvent> = {}): FeedEvent => ({
  seq: at,
  index: 0,
  kind,
  runId: "r",
  workflow: "w",
  at,
  path: "a",
  ...more,
});
const pending: RunNode = { path: "a", alias: "a", kind: "step", children: 0, status: "pending" };

test("a step that is tried twice keeps its first start and its last error", () => {
  const events = [
    event("step.started", 10, { attempt: 1 }),
    event("step.retrying", 15, { dueAt: 40, error: { message: "no" } }),
    event("step.started", 40, { attempt: 2 }),
    event("step.completed", 50),
  ];
  const states = events.map(
    (
      (node: RunNode) => (each: FeedEvent) =>
        (node = fold(node, each))
    )(pending),
  );
  expect(states[1]).toMatchObject({ status: "waiting_retry", dueAt: 40, errorAttempt: 1 });
  expect(states[2]).toMatchObject({ status: "running", attempt: 2, retryCount: 1, dueAt: undefined });
  expect(states[3]).toMatchObject({
    status: "completed",
    startedAt: 10,
    completedAt: 50,
    duration: 40,
    error: { message: "no" },
  });
});

test("a step that its run is suspended for says why, until it is tried again", () => {
  const suspended = [
    event("step.started", 10, { attempt: 1 }),
    event("run.suspended", 12, { reason: { message: "its process died" } }),
  ].reduce(fold, pending);
  expect(suspended).toMatchObject({
    status: "suspended",
    error: { message: "its process died" },
    errorAt: 12,
    errorAttempt: 1,
  });
  expect(fold(suspended, event("step.started", 20, { attempt: 1 }))).toMatchObject({
    status: "running",
    startedAt: 10,
  });
  expect(fold(suspended, event("step.failed", 30, { error: { message: "given up" } }))).toMatchObject({
    status: "failed",
    error: { message: "given up" },
  });
});

test("what is about something else leaves the node as it is", () => {
  expect(fold(pending, event("signal.received", 3))).toBe(pending);
});

test("events are sorted by path, and lines of the log are left out", () => {
  const map = byPath([
    event("step.started", 1),
    event("log", 2),
    event("step.completed", 3),
    event("run.completed", 4, { path: undefined }),
  ]);
  expect(map.get("a")?.map((each) => each.kind)).toEqual(["step.started", "step.completed"]);
  expect(map.size).toBe(1);
});

test("an event concerns the windows above its path", () => {
  expect([...parentsOf(["each:iter3:node0:fetch", "find"])].sort()).toEqual([
    "",
    "each",
    "each:iter3",
    "each:iter3:node0",
  ]);
});
