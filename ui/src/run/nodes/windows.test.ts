import { beforeEach, expect, test } from "vitest";
import type { FeedEvent, RunNode, RunNodes } from "../../api/types";
import { NodeWindows, PAGE } from "./windows";

/* A server with a run of so many iterations, and time that passes when told. */
let total = 0;
let asked: string[] = [];
let pending: (() => void)[] = [];
let frames: (() => void)[] = [];
let timers: (() => void)[] = [];
const status = new Map<string, RunNode["status"]>();
const me = {};

const answer = (parent: string, offset: number, limit: number): RunNodes => ({
  total,
  offset,
  nodes: Array.from({ length: Math.max(0, Math.min(limit, total - offset)) }, (_, i) => {
    const path = `${parent ? `${parent}:` : ""}n${offset + i}`;
    return { path, alias: `n${offset + i}`, kind: "step", children: 0, status: status.get(path) ?? "pending" };
  }),
});
const make = () =>
  new NodeWindows({
    load: (parent, offset, limit) => {
      asked.push(`${parent}@${offset}`);
      const then = answer(parent, offset, limit); // as it was when the question came
      return new Promise((resolve) => pending.push(() => resolve(then)));
    },
    frame: (callback) => frames.push(callback),
    after: (_ms, callback) => timers.push(callback),
  });
const run = (list: (() => void)[]) => list.splice(0).forEach((each) => each());
const settle = async () => {
  run(pending);
  await new Promise((resolve) => setTimeout(resolve, 0));
  run(frames);
};
const event = (kind: string, path: string): FeedEvent => ({
  seq: 1,
  index: 0,
  kind,
  runId: "r",
  workflow: "w",
  at: 5,
  path,
});

beforeEach(() => {
  total = 20_000;
  asked = [];
  pending = frames = timers = [];
  pending = [];
  frames = [];
  timers = [];
  status.clear();
});

test("only what is wanted is fetched, once", async () => {
  const windows = make();
  windows.want(me, [
    { parent: "", page: 0 },
    { parent: "", page: 7 },
  ]);
  windows.want(me, [{ parent: "", page: 7 }]);
  await settle();
  expect(asked).toEqual(["@0", "@700"]);
  expect(windows.at("", 7 * PAGE + 3)?.alias).toBe("n703");
  expect(windows.total("")).toBe(20_000);
  expect(windows.at("", 150)).toBeUndefined();
});

test("many events are one frame, and one reading of what they touch and is wanted", async () => {
  const windows = make();
  windows.want(me, [
    { parent: "", page: 0 },
    { parent: "n3", page: 0 },
    { parent: "n4", page: 0 },
  ]);
  await settle();
  asked = [];
  let told = 0;
  windows.subscribe(() => told++);
  for (let i = 0; i < 5000; i++) windows.events([event("step.completed", `n3:n${i}`)]);
  expect(frames).toHaveLength(1);
  expect(timers).toHaveLength(1);
  run(frames);
  expect(told).toBe(1);
  expect(windows.at("n3", 2)?.status).toBe("completed");
  run(timers);
  expect(asked.sort()).toEqual(["@0", "n3@0"]);
});

test("an answer older than an event does not take the event back", async () => {
  const windows = make();
  windows.want(me, [{ parent: "", page: 0 }]);
  windows.events([event("step.started", "n1")]); // the question was on its way already
  await settle();
  expect(windows.at("", 1)?.status).toBe("running");
});

test("when a stream begins anew, what is wanted is read again", async () => {
  const windows = make();
  windows.want(me, [{ parent: "", page: 0 }]);
  await settle();
  status.set("n0", "failed");
  windows.invalidate();
  await settle();
  expect(windows.at("", 0)?.status).toBe("failed");
});

test("a server that is away leaves what is known, and is asked again at the next stream", async () => {
  let away = false;
  const windows = new NodeWindows({
    load: (parent, offset, limit) =>
      away ? Promise.reject(new Error("away")) : Promise.resolve(answer(parent, offset, limit)),
    frame: (callback) => frames.push(callback),
    after: (_ms, callback) => timers.push(callback),
  });
  windows.want(me, [{ parent: "", page: 0 }]);
  await settle();
  away = true;
  windows.invalidate();
  await settle();
  expect(windows.total("")).toBe(20_000);
  expect(windows.error("")).toBeInstanceOf(Error);
  away = false;
  windows.invalidate();
  await settle();
  expect(windows.error("")).toBeUndefined();
});

test("no more than a few questions are open at a time", async () => {
  const windows = make();
  windows.want(
    me,
    Array.from({ length: 40 }, (_, page) => ({ parent: "", page })),
  );
  expect(pending.length).toBeLessThanOrEqual(6);
  for (let i = 0; i < 10; i++) await settle();
  expect(asked).toHaveLength(40);
});
