import { expect, test } from "vitest";
import type { NodeStatus, RunNode } from "../../api/types";
import { boxesOf } from "../plan";
import { scheduleOf } from "./schedule";

const [stage] = boxesOf({
  name: "m",
  steps: [
    {
      type: "stage",
      alias: "s",
      states: [
        { alias: "low", priority: 10 },
        { alias: "first", priority: 300 },
        { alias: "second", priority: 200 },
        { alias: "third", priority: 100, dependsOn: { a: { state: "first" }, b: { state: "second" } } },
        { alias: "other", priority: 100, dependsOn: { a: { state: "x", stage: "earlier" } } },
      ],
    },
  ],
});

const at = (statuses: Record<string, NodeStatus>) =>
  scheduleOf(stage!, (key) => {
    const alias = key.slice(2);
    const status = statuses[alias];
    return status && ({ path: key, alias, kind: "step", status, completedAt: alias.length, children: 0 } as RunNode);
  });
const names = (boxes: { alias: string }[]) => boxes.map((box) => box.alias).join(" ");

test("what waits for nothing is ready, by priority", () => {
  const schedule = at({});
  expect(names(schedule.ready)).toBe("first second other low");
  expect(names(schedule.blocked)).toBe("third");
});

test("a state is blocked until all that it depends on has settled, however that ended", () => {
  expect(names(at({ first: "completed", second: "running" }).blocked)).toBe("third");
  const schedule = at({ first: "completed", second: "failed" });
  expect(names(schedule.blocked)).toBe("");
  expect(names(schedule.ready)).toBe("third other low");
  expect(names(schedule.settled)).toBe("first second");
});

test("one that will be tried again is ready, and one that waits for a decision keeps its place", () => {
  const schedule = at({ first: "waiting_retry", second: "suspended" });
  expect(names(schedule.ready)).toBe("first other low");
  expect(names(schedule.running)).toBe("second");
});
