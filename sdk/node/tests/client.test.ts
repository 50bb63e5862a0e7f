// client.test.ts: an engine that is somewhere else, by its address: runs of workflows that are defined there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rival, RunTimeoutError, type Engine, type RivalEvent } from "../dist/engine/index.js";
import { newRunId } from "../dist/engine/ids.js";
import { Server } from "./serving.js";

const FILES = {
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
  await assert.rejects(engine.run("helo", {}), { message: "there is no workflow 'helo'; available: approval, hello" });
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
