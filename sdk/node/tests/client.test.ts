// client.test.ts: an engine that is somewhere else, by its address: runs of workflows that are defined there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rival, RunTimeoutError, type Engine, type LifecycleEvent, type RivalEvent } from "../dist/engine/index.js";
import { EventFeed } from "../dist/engine/events.js";
import type { HttpApi } from "../dist/engine/http.js";
import { newRunId } from "../dist/engine/ids.js";
import { Server } from "./serving.js";

const FILES = {
  "noisy.yaml": 'name: noisy\nsteps:\n  - say: { command: ["sh", "-c", "echo words >&2"] }\n',
  "staged.yaml":
    "name: staged\nstages:\n  one:\n    - { name: good, agent_id: good }\n    - { name: bad, agent_id: bad, critical: true, priority: 200, max_retry: 1 }\n" +
    'agents:\n  - { id: good, command: ["true"] }\n  - { id: bad, command: ["false"] }\n',
  "hello.yaml": 'name: hello\ninput: { type: object, required: [who], properties: { who: { type: string } } }\nsteps:\n  - say: { value: "hello ${ .input.who }" }\n',
  "approval.yaml": 'name: approval\nsteps:\n  - answer: { signal: approval }\n  - then: { value: "by ${ .steps.answer.result.by }" }\n',
};
let server: Server;
let engine: Engine;
before(async () => {
  server = await Server.start(FILES);
  engine = rival({ url: server.url });
});
after(async () => {
  await engine.close();
  await server.stop();
});

test("run starts, wait has the outcome, and the same id starts nothing again", async () => {
  const { runId, status } = await engine.run("hello", { who: "kim" });
  assert.match(status, /running|completed/);
  const outcome = await engine.wait("hello", runId);
  assert.deepEqual(outcome, {
    runId,
    status: "completed",
    results: { say: { result: "hello kim", state: {}, status: "completed" } },
  });
  assert.deepEqual(await engine.run("hello", { who: "kim" }, runId), { runId, status: "completed" });
  await assert.rejects(engine.run("hello", { who: "lee" }, runId), /another|differ|conflict/i);
});

test("an unknown workflow is named, with the ones there are", async () => {
  await assert.rejects(engine.run("helo", {}), { message: "there is no workflow 'helo'; available: approval, hello, noisy, staged" });
});

test("bad input is refused with every violation", async () => {
  await assert.rejects(engine.run("hello", { who: 5 }), (error: { violations: { path: string }[] }) => error.violations[0]?.path === "/who");
});

test("signals, state, list and instances", async () => {
  const instance = engine.get("approval").getOrCreate("approval-1");
  assert.deepEqual(await instance.run("approval-1"), { runId: "approval-1", status: "running" });
  await assert.rejects(instance.wait({ timeoutMs: 50, preferEvents: false, pollIntervalMs: 10 }), (error) => {
    assert.ok(error instanceof RunTimeoutError);
    assert.equal(error.message, "run 'approval-1' of workflow 'approval' has not ended after 50 ms");
    return true;
  });
  await assert.rejects(instance.wait({ timeoutMs: 50 }), RunTimeoutError);
  const { runs } = await engine.list({ workflow: "approval", status: "running" });
  assert.deepEqual(runs.map((run) => run.runId), ["approval-1"]);
  await assert.rejects(engine.signal("approval-1", "nobody"), /approval/);
  await engine.signal("approval-1", "approval", { by: "lee" });
  assert.equal((await instance.wait()).results.then?.result, "by lee");
  const state = await instance.getState();
  assert.equal(state.status, "completed");
  assert.equal(typeof state.duration, "number");
});

test("events are heard by kind, by alias, and no longer after off", async () => {
  const heard: string[] = [];
  let cancelled: (event: RivalEvent) => void = () => undefined;
  const seen = new Promise<RivalEvent>((resolve) => (cancelled = resolve));
  const all = engine.on("*", (event) => heard.push(`${event.kind} ${event.runId}`));
  const id = engine.on("workflow:cancelled", (event) => cancelled(event));
  const bad = engine.on("run.started", () => {
    throw new Error("a listener that fails is ignored");
  });
  const told = console.error;
  console.error = () => undefined;
  await engine.run("approval", undefined, "approval-2");
  await engine.cancel("approval-2");
  await engine.cancel("approval-2");
  assert.equal((await seen).runId, "approval-2");
  console.error = told;
  assert.equal((await engine.wait("approval", "approval-2")).status, "cancelled");
  assert.equal(heard[0], "run.started approval-2");
  assert.ok(heard.includes("run.cancelled approval-2"));
  for (const one of [all, id, bad]) assert.equal(engine.off(one), true);
  assert.equal(engine.off(id), false);
});

test("a schedule tells of its life, and a listener for suspend decides, also one that comes later", async () => {
  const heard: string[] = [];
  const ids = (["dispatch", "state_completed", "exhausted", "stage_completed", "final", "completed", "aborted"] as const).map((type) =>
    engine.on(type, (event) => {
      if (event.runId === "staged-1") heard.push([event.type, event.stage, event.state, event.attempt, event.succeed].join(" ").trim());
    }),
  );
  await engine.run("staged", {}, "staged-1");
  // Undecided when it comes to listen, or told as it happens: either way it hears of it.
  const suspended = await new Promise<LifecycleEvent>((resolve) => ids.push(engine.on("suspend", resolve)));
  assert.deepEqual([suspended.type, suspended.runId, suspended.path, suspended.stage, suspended.state], ["suspend", "staged-1", "one:bad", "one", "bad"]);
  const again = await new Promise<LifecycleEvent>((resolve) => ids.push(engine.on("suspend", resolve, "second")));
  assert.equal(again.path, "one:bad");
  await engine.decide("staged-1", "skip", { path: "one:bad" });
  assert.equal((await engine.wait("staged", "staged-1")).status, "completed");
  await new Promise<void>((resolve) => {
    const look = (): void => (heard.at(-1) === "completed" ? resolve() : void setTimeout(look, 10));
    look();
  });
  assert.deepEqual(heard, [
    "dispatch one bad 0",
    "dispatch one bad 1",
    "state_completed one bad 1 false",
    "exhausted one bad 1 false",
    "dispatch one good 0",
    "state_completed one good 0 true",
    "stage_completed one",
    "completed",
  ]);
  for (const id of ids) assert.equal(engine.off(id), true);
  assert.throws(() => engine.on("state_complete", () => undefined), /there is no event 'state_complete'/);
});

test("log lines are heard by those who want them", async () => {
  const quiet = engine.on("run.completed", () => undefined);
  const line = new Promise<RivalEvent>((resolve) => engine.on("log", resolve, "lines"));
  await engine.run("noisy");
  assert.equal((await line).message, "words");
  for (const id of [quiet, "lines"]) engine.off(id);
});

test("who waits for the stream waits for the one that is begun anew", async () => {
  const asked: string[] = [];
  const fetched = (_method: string, path: string): Promise<Response> => {
    asked.push(path);
    return path.endsWith("logs=0") ? new Promise(() => undefined) : Promise.resolve(new Response("id: 1.0\n\n"));
  };
  const feed = new EventFeed({ fetch: fetched } as unknown as HttpApi, () => undefined);
  feed.on("run.completed", () => undefined);
  const ready = feed.ready(); // the first stream never comes
  feed.on("log", () => undefined);
  await ready;
  assert.deepEqual(asked, ["api/v1/events?logs=0", "api/v1/events?logs=1"]);
  feed.close();
  await feed.ready();
});

test("ids of runs sort by time", () => {
  const ids = [newRunId(1000), newRunId(2000), newRunId(Date.now()), newRunId(Date.now() + 1)];
  assert.deepEqual([...ids].sort(), ids);
  assert.match(ids[0]!, /^[0-9a-z]{26}$/);
});

test("a closed engine refuses, and says so", async () => {
  const other = rival({ url: server.url });
  await other.close();
  await other.close();
  await assert.rejects(other.run("hello", { who: "x" }), /has been closed/);
  assert.throws(() => other.on("*", () => undefined), /has been closed/);
});
