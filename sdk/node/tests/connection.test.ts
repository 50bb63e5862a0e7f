// connection.test.ts: frames, what a step sees of them, and what becomes of its answer when the connection is lost.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { StepError, type StepContext } from "rival";
import { z } from "zod";
import { Connection, ConnectionLostError, RefusedError } from "../dist/worker/connection.js";
import { Connections } from "../dist/worker/connections.js";
import { pending } from "../dist/worker/pending.js";
import { FrameReader, FrameWriter, type Frame } from "../dist/wire/frames.js";
import { invoke, ScriptedEngine } from "./scripted.js";

const loader = new URL("./loader.js", import.meta.url).href;
type Functions = Record<string, (context: any) => unknown>;

async function connected(functions: Functions, more: object = {}): Promise<{ engine: ScriptedEngine; worker: Connection }> {
  const engine = await ScriptedEngine.start();
  const offered = new Map(Object.entries(functions).map(([name, fn]) => [name, { fn }]));
  const worker = new Connection({
    address: () => Promise.resolve({ path: engine.path }),
    credits: 10,
    offers: [{ plan: { name: "w" }, functions: offered, ...more }],
    functions: new Map(),
  });
  const open = worker.open();
  await engine.greet();
  await open;
  return { engine, worker };
}

async function withWorker(
  functions: Functions,
  body: (engine: ScriptedEngine, worker: Connection) => Promise<void>,
  more: object = {},
): Promise<void> {
  const { engine, worker } = await connected(functions, more);
  try {
    await body(engine, worker);
  } finally {
    await worker.close(0);
    await engine.stop();
  }
}

test("frames come out whole, however they come in", () => {
  const out: Frame[] = [];
  const chunks: Buffer[] = [];
  const writer = new FrameWriter((bytes) => chunks.push(bytes));
  for (const text of ["", "ä".repeat(1000), "x"]) writer.send(JSON.stringify({ type: "log", text }));
  writer.flush();
  assert.equal(chunks.length, 1, "several frames are one write");
  const reader = new FrameReader((frame) => out.push(frame));
  for (const byte of chunks[0]!) reader.push(Buffer.from([byte]));
  assert.deepEqual(out.map((frame) => frame.text), ["", "ä".repeat(1000), "x"]);
  assert.throws(() => new FrameReader(() => undefined).push(Buffer.from([255, 255, 255, 255])), /a frame of 4294967295 bytes/);
  assert.throws(() => new FrameReader(() => undefined).push(Buffer.from([0, 0, 0, 2, 91, 93])), /an object with a 'type'/);
});

test("frames that come together are taken one by one: those before a bad one count", () => {
  const framed = (json: string): Buffer => {
    const bytes = Buffer.from(json);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(bytes.length);
    return Buffer.concat([head, bytes]);
  };
  const taken = (...frames: (string | Buffer)[]): unknown[] => {
    const out: unknown[] = [];
    try {
      new FrameReader((frame) => out.push(frame.n)).push(Buffer.concat(frames.map((one) => (typeof one === "string" ? framed(one) : one))));
    } catch (error) {
      out.push((error as Error).name);
    }
    return out;
  };
  const good = (n: unknown): string => JSON.stringify({ type: "x", n });
  assert.deepEqual(taken(good(1), good("ä𝄞"), good([])), [1, "ä𝄞", []]);
  assert.deepEqual(taken(good(1), "{not json", good(2)), [1, "SyntaxError"]);
  assert.deepEqual(taken(good(1), "[]", good(2)), [1, "Error"]);
  assert.deepEqual(taken(good(1), Buffer.from([255, 255, 255, 255])), [1, "Error"]);
  // Bytes that would be two members of a list, or none, are no frame.
  assert.deepEqual(taken(good(1), `${good(2)},${good(3)}`, good(4)), [1, "SyntaxError"]);
  assert.deepEqual(taken(good(1), `{"type":"x","n":2`, `}`, good(4)), [1, "SyntaxError"]);
});

test("a step sees its context, and everything but its state is read-only", async () => {
  let seen: StepContext | undefined;
  await withWorker(
    {
      step: (context: StepContext) => {
        seen = context;
        context.state.description = "done";
        context.log.info({ treeType: "oak" }, "searching");
        return context.steps.find!.result.id as string;
      },
    },
    async (engine) => {
      const call = invoke("step", { input: { n: 1 }, scope: 2, last: 2, index: 3, item: "it" });
      engine.send(
        { type: "entry", entry: 1, alias: "find", status: "completed", json: { id: "oak-1" }, state: { count: 2 } },
        { type: "entry", entry: 2, before: 1, alias: "chop", status: "failed", json: null, error: { message: "no" } },
        call,
      );
      const items = await engine.next("get");
      assert.deepEqual([items.part, items.id], ["items", call.id]);
      engine.send({ type: "value", id: call.id, seq: items.seq, slot: 4, json: ["it", "em"] });
      const log = await engine.next("log");
      assert.deepEqual([log.level, log.message, log.metadata], [1, "searching", { treeType: "oak" }]);
      const result = await engine.next("result");
      assert.deepEqual(result, { type: "result", id: call.id, result: "oak-1", state: { description: "done" } });
    },
  );
  const { input, steps, lastStep, loop, run, signal, ...rest } = seen!;
  assert.deepEqual(input, { n: 1 });
  assert.deepEqual(Object.keys(steps), ["find", "chop"]);
  assert.deepEqual(JSON.parse(JSON.stringify(steps)), {
    find: { result: { id: "oak-1" }, state: { count: 2 }, status: "completed" },
    chop: { result: null, state: {}, status: "failed", error: { message: "no" } },
  });
  assert.deepEqual(lastStep, { result: null, state: {}, alias: "chop", stepName: "chop" });
  assert.deepEqual(loop, { item: "it", index: 3, items: ["it", "em"] });
  assert.deepEqual([run.runId, run.attempt, signal.aborted], ["r1", 1, false]);
  assert.deepEqual(Object.keys(rest), ["state", "log"]);
  assert.throws(() => ((input as { n: number }).n = 2), TypeError);
  assert.throws(() => ((steps.find!.result as { id: string }).id = "x"), TypeError);
  assert.throws(() => ((steps as Record<string, unknown>).more = 1), TypeError);
});

test("the first step has nothing before it, and no loop", async () => {
  let seen: StepContext | undefined;
  await withWorker({ step: (context: StepContext) => void (seen = context) }, async (engine) => {
    engine.send(invoke("step", { input: null }));
    await engine.next("result");
  });
  assert.deepEqual(seen!.lastStep, { result: undefined, state: {}, alias: null, stepName: null });
  assert.equal(seen!.input, undefined);
  assert.equal("loop" in seen!, false);
  assert.deepEqual({ ...seen!.steps }, {});
});

test("long results are fetched once, and only for functions that may read them", async () => {
  const functions = { reads: ({ steps }: any) => steps.big.result.length, other: ({ steps }: any) => steps.small.result, none: () => 1 };
  await withWorker(functions, async (engine) => {
    engine.send(
      { type: "entry", entry: 1, alias: "big", status: "completed", absent: true },
      { type: "entry", entry: 2, before: 1, alias: "small", status: "completed", json: "s" },
    );
    engine.send(invoke("none", { scope: 2 }), invoke("other", { scope: 2 }));
    assert.equal((await engine.next("result")).result, 1);
    assert.equal((await engine.next("result")).result, "s");
    const call = invoke("reads", { scope: 2 });
    engine.send(call);
    const get = await engine.next("get");
    assert.deepEqual([get.part, get.entry], ["step", 1]);
    engine.send({ type: "value", id: call.id, seq: get.seq, json: "x".repeat(100_000) });
    assert.equal((await engine.next("result")).result, 100_000);
    engine.send(invoke("reads", { scope: 2 }));
    assert.equal((await engine.next("result")).result, 100_000, "without another get");
  });
});

test("errors have message, stack and behavior", async () => {
  const functions = {
    plain: () => {
      throw new TypeError("wrong");
    },
    retry: () => {
      throw new StepError("again", { behavior: "retry", maxAttempts: 3, backoff: "exponential", code: "BUSY" });
    },
    text: () => Promise.reject("only a text"),  
    ring: () => {
      const ring: { self?: unknown } = {};
      ring.self = ring;
      return ring;
    },
    fn: () => () => 1,
  };
  await withWorker(functions, async (engine) => {
    const failing = async (fn: string): Promise<Frame> => {
      engine.send(invoke(fn));
      return engine.next("error");
    };
    const plain = (await failing("plain")).error as { message: string; name: string; stack: string };
    assert.deepEqual([plain.message, plain.name], ["wrong", "TypeError"]);
    assert.match(plain.stack, /connection\.test\.ts:\d+:\d+/);
    assert.doesNotMatch(plain.stack, /dist\/worker/);
    const retry = await failing("retry");
    assert.deepEqual([retry.behavior, retry.maxAttempts, retry.backoff], ["retry", 3, "exponential"]);
    assert.equal((retry.error as { code: string }).code, "BUSY");
    assert.deepEqual((await failing("text")).error, { message: "only a text" });
    assert.match(((await failing("ring")).error as { message: string }).message, /circular|cyclic/);
    assert.match(((await failing("fn")).error as { message: string }).message, /a function, which is no JSON/);
    assert.match(((await failing("nobody")).error as { message: string }).message, /no function 'nobody'/);
  });
});

test("a step may be pending, and a result is held to its schema", async () => {
  const engine = await ScriptedEngine.start();
  const functions = new Map([
    ["later", { fn: () => pending("handle-1") }],
    ["good", { fn: () => ({ n: "5" }), result: z.object({ n: z.coerce.number() }) }],
    ["bad", { fn: () => ({ n: "x" }), result: z.object({ n: z.number() }) }],
  ]);
  const worker = new Connection({
    address: () => Promise.resolve({ path: engine.path }),
    credits: 1,
    offers: [{ plan: { name: "w" }, functions }],
    functions: new Map(),
  });
  const open = worker.open();
  await engine.greet();
  await open;
  engine.send(invoke("later"));
  assert.equal((await engine.next("result")).pending, "handle-1");
  engine.send(invoke("good"));
  assert.deepEqual((await engine.next("result")).result, { n: 5 });
  engine.send(invoke("bad"));
  assert.match(((await engine.next("error")).error as { message: string }).message, /does not fit its schema: n: /);
  await worker.close(0);
  await engine.stop();
});

test("cancel aborts the signal; the answer is given as usual", async () => {
  const functions = {
    wait: ({ signal }: StepContext) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve("stopped"));
      }),
  };
  await withWorker(functions, async (engine) => {
    const call = invoke("wait");
    engine.send(call, { type: "cancel", id: call.id });
    assert.equal((await engine.next("result")).result, "stopped");
  });
});

test("a handler gets error, failed step and the workflow's state", async () => {
  let seen: any;
  await withWorker({ tell: (context: any) => void (seen = context) }, async (engine) => {
    const call = invoke("tell", { handles: "failed", scope: 1, input: { a: 1 } });
    engine.send({ type: "entry", entry: 1, alias: "find", status: "completed", json: 1 }, call);
    const gets = [await engine.next("get"), await engine.next("get")];
    for (const get of gets)
      engine.send(
        get.part === "error"
          ? { type: "value", id: call.id, seq: get.seq, json: { message: "no" } }
          : {
              type: "value",
              id: call.id,
              seq: get.seq,
              json: { result: null, state: { n: 1 }, alias: "chop", stepName: "chop", status: "failed" },
            },
      );
    await engine.next("result");
  });
  assert.deepEqual(seen.error, { message: "no" });
  assert.deepEqual(seen.failedStep, { result: null, state: { n: 1 }, alias: "chop", stepName: "chop", status: "failed" });
  assert.deepEqual({ ...seen.workflowState, steps: Object.keys(seen.workflowState.steps) }, {
    input: { a: 1 },
    steps: ["find"],
    status: "failed",
    runId: "r1",
    workflowName: "w",
  });
});

test("after a lost connection untaken answers are sent again and what runs goes on", async () => {
  let release: (value: string) => void = () => undefined;
  const functions = { quick: () => "q", slow: () => new Promise((resolve) => (release = resolve)) };
  await withWorker(functions, async (engine) => {
    const taken = invoke("quick");
    const untaken = invoke("quick");
    const slow = invoke("slow");
    engine.send(taken, untaken, slow);
    await engine.next("result");
    await engine.next("result");
    engine.send({ type: "taken", ids: [taken.id] }, { type: "ping" });
    await engine.next("pong");
    engine.cut();
    const hello = await engine.greet({ resumed: true });
    assert.equal(hello.session, "s1");
    assert.deepEqual((hello.has as string[]).sort(), [slow.id, untaken.id].sort());
    assert.deepEqual(await engine.next("result"), { type: "result", id: untaken.id, result: "q" });
    release("late");
    assert.deepEqual(await engine.next("result"), { type: "result", id: slow.id, result: "late" });
  });
});

test("a session that is gone takes its work with it", async () => {
  let aborted = false;
  const functions = {
    quick: () => "q",
    slow: ({ signal }: StepContext) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          aborted = true;
          resolve("x");
        });
      }),
  };
  await withWorker(functions, async (engine, worker) => {
    engine.send(invoke("quick"), invoke("slow"));
    await engine.next("result");
    engine.cut();
    await engine.greet({ session: "s2" });
    await worker.ready();
    assert.equal(aborted, true);
    const again = invoke("quick");
    engine.send(again);
    assert.equal((await engine.next("result")).id, again.id, "and nothing old comes first");
  });
});

test("calls that are safe are asked again after a loss, others reject", async () => {
  await withWorker({}, async (engine, worker) => {
    const safe = worker.call("wait", { runId: "r" }, true);
    const unsafe = worker.call("signal", { runId: "r" }, false);
    await engine.next("call");
    await engine.next("call");
    engine.cut();
    await assert.rejects(unsafe, ConnectionLostError);
    await engine.greet();
    const call = await engine.next("call");
    assert.equal(call.method, "wait");
    engine.send({ type: "result", id: call.id!, status: "completed" });
    assert.equal((await safe).status, "completed");
    const refused = worker.call("run", {}, true);
    engine.send({ type: "error", id: (await engine.next("call")).id!, code: -15, message: "there is none" });
    await assert.rejects(refused, (error) => error instanceof RefusedError && error.code === -15);
  });
});

test("an engine that refuses what is offered ends the connection for good", async () => {
  const engine = await ScriptedEngine.start();
  const worker = new Connection({
    address: () => Promise.resolve({ path: engine.path }),
    credits: 1,
    offers: [],
    functions: new Map(),
  });
  const open = worker.open();
  await engine.next("hello");
  engine.send({ type: "hello", protocol: 2, session: "s", heartbeatMs: 1000 });
  engine.send({ type: "error", id: (await engine.next("register")).id!, code: -1, message: "a bad plan" });
  await assert.rejects(open, /a bad plan/);
  await assert.rejects(worker.ready(), /a bad plan/);
  await engine.stop();
});

test("inputs are judged by their schema", async () => {
  const validate = (input: unknown) =>
    Promise.resolve(input === 1 ? { input: { n: 1 } } : { violations: [{ path: "/n", message: "no" }] });
  await withWorker(
    {},
    async (engine) => {
      engine.send({ type: "validate", id: "v1", workflow: "w", version: "v", input: 1 });
      assert.deepEqual((await engine.next("valid")).input, { n: 1 });
      engine.send({ type: "validate", id: "v2", workflow: "w", version: "v", input: 2 });
      assert.deepEqual((await engine.next("violations")).violations, [{ path: "/n", message: "no" }]);
    },
    { validate },
  );
});

test("a promise that a step lets go of is its error, whatever else runs; others end the process", () => {
  const run = (what: string) =>
    spawnSync(process.execPath, ["--import", loader, fileURLToPath(new URL("./letting-go.ts", import.meta.url)), what], {
      encoding: "utf8",
    });
  const { stdout, status } = run("step");
  assert.deepEqual([stdout, status], ["floats: nobody waited\nother: fine\nother: fine\n", 0]);
  const program = run("program");
  assert.equal(program.status, 1);
  assert.match(program.stderr, /not a step's/);
});

test("a host offers its files at once, and runs what comes in the same bytes as its hello", async () => {
  const engine = await ScriptedEngine.start();
  const worker = new Connection({
    address: () => Promise.resolve({ path: engine.path }),
    credits: 10,
    offers: [{ plan: { name: "w" }, functions: new Map([["f", { fn: () => sleep(20, 7) }]]), file: "/w.ts" }],
    functions: new Map(),
    problems: [{ file: "/bad.ts", line: 3, message: "no" }],
  });
  const open = worker.open();
  await engine.next("hello");
  const register = await engine.next("register");
  assert.deepEqual(
    [register.id, register.problems, (register.workflows as { file: string }[])[0]!.file],
    [undefined, [{ file: "/bad.ts", line: 3, message: "no" }], "/w.ts"],
  );
  engine.send({ type: "hello", protocol: 2, session: "s", heartbeatMs: 10_000 }, invoke("f"));
  await open;
  assert.equal((await engine.next("result")).result, 7);
  engine.cut();
  await worker.over(); // it does not come back
  await engine.stop();
});

async function withMember(
  body: (first: ScriptedEngine, other: ScriptedEngine, list: { member: number; members: { id: number; workers: string }[] }) => Promise<void>,
): Promise<void> {
  const first = await ScriptedEngine.start();
  const other = await ScriptedEngine.start("tcp");
  const worker = new Connections({
    address: () => Promise.resolve({ path: first.path }),
    credits: 10,
    offers: [],
    functions: new Map([["f", { fn: () => 1 }]]),
    refusedMs: 20,
  });
  const list = { member: 1, members: [{ id: 1, workers: "tcp://127.0.0.1:1" }, { id: 2, workers: other.url }] };
  try {
    const open = worker.first.open();
    await first.greet(list);
    await open;
    await body(first, other, list);
  } finally {
    await worker.close(0);
    await first.stop();
    await other.stop();
  }
}

test("a member that refuses a worker is tried again, though no list changes", { timeout: 60_000 }, () =>
  withMember(async (_first, other) => {
    const refusal = { type: "error", code: -1, message: "this token is not known here" };
    for (let times = 0; times < 2; times++) {
      await other.next("hello");
      other.send(refusal);
    }
    await other.greet();
    other.cut(); // it is connected to again, and refuses then
    await other.next("hello");
    other.send(refusal);
    await other.greet();
  }),
);

test("a hello without members has none: the others are left", { timeout: 60_000 }, () =>
  withMember(async (first, other) => {
    await other.greet();
    first.cut();
    await first.greet();
    await other.next("bye");
  }),
);
