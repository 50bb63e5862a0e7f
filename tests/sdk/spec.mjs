// spec.mjs: what the specification says of the npm package, sentence by sentence, as a stranger's program would try it: from an
// installed package, by its public names only. Prints TAP. spec.sh runs it on Node.js and on Bun.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import * as rivals from "rival";
import { z } from "zod";

const {
  rival,
  createWorkflow,
  defineWorkflow,
  compileWorkflow,
  StepError,
  httpStep,
  delayStep,
  workflow,
  Results,
  WorkflowRegistry,
  registerWorkflowsFromDirectory,
  registerWorkflowFile,
  planSchema,
} = rivals;

let count = 0;
let failed = 0;
async function says(sentence, check) {
  try {
    await check();
    console.log(`ok ${++count} - ${sentence}`);
  } catch (error) {
    failed++;
    console.log(`not ok ${++count} - ${sentence}`);
    console.log(String(error?.stack ?? error).replaceAll(/^/gm, "#   "));
  }
}

/** An engine with these workflows; it is closed whatever happens. */
async function withEngine(args, use) {
  const engine = rival(...args);
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}
async function outcome(engine, name, input, runId) {
  const run = await engine.run(name, input, runId);
  return engine.wait(name, run.runId);
}
const plain = (value) => JSON.parse(JSON.stringify(value));
async function eventually(what, look) {
  for (let i = 0; i < 1200; i++) {
    if (await look()) return;
    await pause(50);
  }
  assert.fail(`waited in vain for: ${what}`);
}

/** A server of its own, with files. */
async function serve(files, ...args) {
  const folder = `served-${count}`;
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(`${folder}/${name}`, text);
  const child = spawn(process.env.RIVAL_BIN, ["serve", folder, "--store", `${folder}.db`, "--listen", "127.0.0.1:0", "--stop-with-stdin", ...args], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const [line] = await once(child.stdout, "data");
  return {
    url: String(line).trim().split("\n")[0],
    pid: child.pid,
    stop: async () => {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

// --- the package ------------------------------------------------------------------------------------------------

await says("it is an npm package `rival`, ESM, with types", () => {
  const about = JSON.parse(readFileSync("node_modules/rival/package.json", "utf8"));
  assert.deepEqual([about.name, about.type], ["rival", "module"]);
  assert.ok(existsSync(resolve("node_modules/rival", about.exports["."].types)));
  assert.match(about.engines.node, /^>=20/);
});

await says("it starts the C engine as a child: `rival(...workflows)`", async () => {
  const hello = createWorkflow("hello").step(function say({ input }) {
    return `hello ${input.who}`;
  });
  const bye = defineWorkflow("bye", () => "bye");
  await withEngine([hello, bye], async (engine) => {
    const { runId, status } = await engine.run("hello", { who: "kim" });
    assert.equal(status, "running");
    assert.deepEqual(await engine.wait("hello", runId), {
      runId,
      status: "completed",
      results: { say: { result: "hello kim", state: {}, status: "completed" } },
    });
    assert.equal((await outcome(engine, "bye")).results.step.result, "bye");
  });
});

await says("`rival({store}, ...workflows)`: what is on disk is there for the next engine", async () => {
  let calls = 0;
  const kept = createWorkflow("kept").step("once", () => ++calls);
  await withEngine([{ store: "kept.db" }, kept], (engine) => outcome(engine, "kept", null, "kept-1"));
  assert.ok(existsSync("kept.db"));
  await withEngine([{ store: "kept.db" }, kept], async (engine) => {
    assert.equal((await outcome(engine, "kept", null, "kept-1")).results.once.result, 1);
  });
  assert.equal(calls, 1);
});

await says("`rival({bin})`: the program is the one that was named", async () => {
  const nothing = defineWorkflow("nothing", () => 1);
  assert.throws(() => rival({ bin: "/nowhere/rival" }, nothing), /\/nowhere\/rival/);
  const named = process.env.RIVAL_BIN;
  process.env.RIVAL_BIN = "/nowhere/else";
  try {
    await withEngine([{ bin: named }, nothing], async (engine) => assert.equal((await outcome(engine, "nothing")).status, "completed"));
  } finally {
    process.env.RIVAL_BIN = named;
  }
});

const FILES = {
  "approval.yaml": "name: approval\nsteps:\n  - answer: { signal: approval }\n",
  "staged.yaml":
    "name: staged\nstages:\n  one:\n    - { name: bad, agent_id: bad, critical: true }\n" + 'agents:\n  - { id: bad, command: ["false"] }\n',
};

await says("`rival({url, token})` connects to a server; run, wait, get, list, cancel, signal, decide, complete, on, off and close", async () => {
  writeFileSync("tokens", "admin admin-token-0123456789 kim\nworker worker-token-0123456789\n", { mode: 0o600 });
  const server = await serve(FILES, "--token-file", "tokens");
  try {
    await assert.rejects(rival({ url: server.url, token: "not-a-token-0123456789" }).list(), /401|token/i);
    await withEngine([{ url: server.url, token: "admin-token-0123456789" }], async (engine) => {
      const heard = [];
      const id = engine.on("run.completed", (event) => heard.push(event.runId));
      assert.deepEqual(await engine.run("approval", null, "a-1"), { runId: "a-1", status: "running" });
      assert.equal((await engine.list({ workflow: "approval" })).runs[0].runId, "a-1");
      await engine.signal("a-1", "approval", { approved: true });
      assert.deepEqual((await engine.wait("approval", "a-1", { timeoutMs: 60_000 })).results.answer.result, { approved: true });
      await eventually("run.completed", () => heard.includes("a-1"));
      assert.equal(engine.off(id), true);

      const instance = engine.get("approval").getOrCreate("a-2");
      await instance.run("a-2", null);
      assert.equal((await instance.getState()).status, "running");
      await instance.cancel();
      assert.equal((await instance.wait()).status, "cancelled");
      assert.equal(typeof (await instance.getState()).duration, "number");

      await engine.run("staged", {}, "s-1");
      await eventually("suspended", async () => (await engine.get("staged").getOrCreate("s-1").getState()).status === "suspended");
      await engine.decide("s-1", "skip", { path: "one:bad" });
      assert.equal((await engine.wait("staged", "s-1")).status, "completed");
    });
  } finally {
    await server.stop();
  }
  const later = createWorkflow("later").step("ask", ({ run }) => rivals.pending(`h-${run.runId}`));
  await withEngine([later], async (engine) => {
    const { runId } = await engine.run("later");
    await eventually("the handle", () => engine.complete(runId, `h-${runId}`, { result: 7 }).then(() => true, () => false));
    assert.equal((await engine.wait("later", runId)).results.ask.result, 7);
  });
});

// --- what is written --------------------------------------------------------------------------------------------

const noop = () => null;

await says("`createWorkflow(name)` has input, description, step, steps, forEach, concurrent, parallel, branch, loop, workflow, onError, build and register", async () => {
  const told = [];
  const inner = createWorkflow("inner").step("double", ({ input }) => input.n * 2);
  const all = createWorkflow("all")
    .input(z.object({ n: z.number() }))
    .description("Everything once")
    .step(function first({ input }) {
      return input.n;
    })
    .steps([{ fn: ({ lastStep }) => lastStep.result + 1, alias: "second" }, { run: () => 3, alias: "third" }])
    .forEach({ name: "each", items: ({ steps }) => [steps.first.result, 5], run: ({ loop }) => loop.item + loop.index })
    .concurrent({ name: "both", steps: [{ fn: () => "l", alias: "left" }, { fn: () => "r", alias: "right" }] })
    .parallel({ name: "more", steps: [{ fn: () => 1, alias: "only" }] })
    .branch({ name: "way", if: ({ input }) => input.n > 1, then: [{ fn: () => "big", alias: "big" }], else: [{ fn: () => "small", alias: "small" }] })
    .loop({ name: "count", body: [{ fn: ({ loop }) => loop.index, alias: "i" }], until: ({ steps }) => steps.i.result === 1 })
    .workflow(inner)
    .step("last", () => {
      throw new Error("at the end");
    })
    .onError(({ error, failedStep, workflowState }) => void told.push(error.message, failedStep.stepName, workflowState.workflowName));
  const definition = all.build();
  assert.equal(definition.name, "all");
  assert.equal(all.register(), definition);
  await withEngine([], async (engine) => {
    const { results, failedStep, status } = await outcome(engine, "all", { n: 2 });
    assert.deepEqual([status, failedStep], ["failed", "last"]);
    assert.deepEqual([results.first.result, results.second.result, results.third.result], [2, 3, 3]);
    assert.deepEqual(
      results.each.result.iterations.map((one) => [one.item, one.index, one.results.run.result]),
      [[2, 0, 2], [5, 1, 6]],
    );
    assert.deepEqual(results.both.result, {
      left: { result: "l", state: {}, status: "completed" },
      right: { result: "r", state: {}, status: "completed" },
    });
    assert.equal(results.more.result.only.result, 1);
    assert.deepEqual([results.way.result.taken, results.way.result.results.small.status], ["then", "skipped"]);
    assert.equal(results.count.result.iterations.length, 2);
    assert.equal(results.inner.result, 4);
    assert.deepEqual(told, ["at the end", "last", "all"]);
  });
});

await says("a refused input throws the ZodError itself, and there is no run", async () => {
  const strict = createWorkflow("strict").input(z.object({ n: z.number().min(1) })).step(noop);
  await withEngine([strict], async (engine) => {
    await assert.rejects(engine.run("strict", { n: 0 }), z.ZodError);
    assert.deepEqual((await engine.list({ workflow: "strict" })).runs, []);
  });
});

await says("`defineWorkflow(name, {steps, …})` and `defineWorkflow(name, ...steps)`", async () => {
  const find = ({ input }) => input.kind;
  const chop = ({ steps }) => `${steps.find.result} chopped`;
  const long = defineWorkflow("long", { steps: [find, chop], input: z.object({ kind: z.string() }), description: "Trees" });
  const short = defineWorkflow("short", find, chop);
  assert.deepEqual(long.steps, short.steps);
  assert.equal(long.description, "Trees");
  await withEngine([long, short], async (engine) => {
    for (const name of ["long", "short"]) assert.equal((await outcome(engine, name, { kind: "oak" })).results.chop.result, "oak chopped");
  });
});

await says("`StepError`: stop, continue, retry", async () => {
  let tries = 0;
  const errors = createWorkflow("errors")
    .step("goesOn", () => {
      throw new StepError("so what", { behavior: "continue" });
    })
    .step("again", () => {
      if (++tries < 3) throw new StepError("busy", { behavior: "retry", maxAttempts: 3, backoff: "exponential" });
      return tries;
    })
    .step({
      alias: "stops",
      maxAttempts: 5,
      fn: () => {
        throw new StepError("no", { behavior: "stop" });
      },
    });
  await withEngine([errors], async (engine) => {
    const { results, failedStep } = await outcome(engine, "errors");
    assert.deepEqual([results.goesOn.status, results.again.result, failedStep], ["failed", 3, "stops"]);
    const state = await engine.get("errors").getOrCreate((await engine.list({ workflow: "errors" })).runs[0].runId).getState();
    assert.equal(state.steps.find((step) => step.alias === "stops").retryCount, 0);
  });
});

await says("`httpStep`, `delayStep`: any field may be a function of the context", async () => {
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      response.statusCode = request.headers["x-status"] === undefined ? 200 : Number(request.headers["x-status"]);
      response.end(JSON.stringify({ method: request.method, path: request.url, body: Buffer.concat(parts).toString() }));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  const fields = createWorkflow("fields")
    .step(httpStep({ url: `http://127.0.0.1:${port}/plain` }))
    .step(
      httpStep({
        url: ({ input }) => `http://127.0.0.1:${port}/${input.id}`,
        method: () => "POST",
        headers: async ({ steps }) => ({ "x-status": String(steps.httpRequest.result.status + 220) }),
        body: ({ lastStep }) => ({ before: lastStep.stepName }),
        responseType: () => "text",
        timeout: () => 60_000,
        throwOnError: () => false,
      }),
    )
    .step(delayStep({ seconds: () => 0.005 }))
    .step(delayStep({ milliseconds: ({ input }) => input.id.length }))
    .step(delayStep({ duration: () => "1ms" }))
    .step(delayStep({ duration: "0.002s" }));
  try {
    await withEngine([fields], async (engine) => {
      const { results, error } = await outcome(engine, "fields", { id: "seven77" });
      assert.equal(error, undefined, JSON.stringify(error));
      assert.deepEqual([results.httpRequest.result.status, results.httpRequest.result.data.path], [200, "/plain"]);
      assert.deepEqual(Object.keys(results.httpRequest.result).sort(), ["data", "duration", "headers", "status", "statusText"]);
      assert.equal(results.httpRequest_2.result.status, 420);
      assert.deepEqual(JSON.parse(results.httpRequest_2.result.data), { method: "POST", path: "/seven77", body: '{"before":"httpRequest"}' });
      for (const [alias, least] of [["delay", 5], ["delay_2", 7], ["delay_3", 1], ["delay_4", 2]]) assert.ok(results[alias].result.delayedMs >= least, alias);
    });
  } finally {
    server.close();
  }
});

await says("`workflow(file)`, `registerWorkflowFile`, `registerWorkflowsFromDirectory`, `Results`", async () => {
  mkdirSync("flows/steps", { recursive: true });
  writeFileSync("flows/payment.ts", 'export function charge(): string { return "charged"; }\nexport const steps = [charge];\n');
  writeFileSync("flows/steps/tree-steps.ts", 'export const findTree = ({ input }: any) => ({ treeId: "oak-123", kind: input.treeType });\n');
  writeFileSync(
    "flows/tree-processing.ts",
    `import { z } from "zod";
import { Results, workflow } from "rival";
import { findTree } from "./steps/tree-steps";
export const input = z.object({ treeType: z.string() });
export const results = Results({ findTree: z.object({ treeId: z.string(), kind: z.string() }) });
function chopTree({ steps, state }: { steps: typeof results.Steps; state: any }) {
  state.description = \`Chopped tree \${steps.findTree.result.treeId}\`;
  return { pieces: 10 };
}
export const steps = [findTree, { fn: chopTree, maxAttempts: 2 }, workflow("./payment.ts")];
`,
  );
  writeFileSync("alone.mjs", "export const name = 'lonely';\nexport const steps = [() => 'alone'];\n");
  await registerWorkflowsFromDirectory("flows");
  await registerWorkflowFile("alone.mjs");
  await withEngine([], async (engine) => {
    const { results } = await outcome(engine, "tree-processing", { treeType: "oak" });
    assert.deepEqual(results.findTree.result, { treeId: "oak-123", kind: "oak" });
    assert.equal(results.chopTree.state.description, "Chopped tree oak-123");
    assert.equal(results.payment.result, "charged");
    assert.equal((await outcome(engine, "lonely")).results.step.result, "alone");
  });
  assert.ok(Results({ a: z.number() }).schemas.a);
});

await says("`WorkflowRegistry`: register, list, launch, getWorkflow, getActiveRuns, cancel", async () => {
  const registry = new WorkflowRegistry();
  registry.register(createWorkflow("quick").description("Soon done").input(z.object({ n: z.number() })).step("twice", ({ input }) => input.n * 2));
  registry.register(createWorkflow("waits").step(rivals.signalStep({ name: "go" })));
  try {
    const { name, description, stepCount, inputSchema } = registry.list().find((one) => one.name === "quick");
    assert.deepEqual([name, description, stepCount], ["quick", "Soon done", 1]);
    assert.ok(inputSchema instanceof z.ZodType);
    const { runId } = await registry.launch("quick", { n: 4 });
    assert.equal((await registry.getWorkflow(runId).wait()).results.twice.result, 8);
    await assert.rejects(registry.launch("quick", { n: "x" }), z.ZodError);
    const waiting = await registry.launch("waits");
    assert.deepEqual((await registry.getActiveRuns("waits")).map((run) => run.runId), [waiting.runId]);
    await registry.cancel(waiting.runId);
    assert.equal((await registry.getWorkflow(waiting.runId).getState()).status, "cancelled");
    assert.deepEqual(await registry.getActiveRuns(), []);
  } finally {
    await registry.close();
  }
});

// --- what is built and compiled ---------------------------------------------------------------------------------

await says("a built definition: {name, steps: [{id, alias, run, config?} | forEach | concurrent], inputSchema?, onError?, description?}, ids s1, l1, p1", () => {
  const items = () => [1];
  const schema = z.object({});
  const built = createWorkflow("shape")
    .input(schema)
    .description("d")
    .onError(noop)
    .step({ fn: noop, alias: "a", timeout: 5 })
    .forEach({ name: "each", items, run: noop, parallel: true, concurrency: 2 })
    .concurrent({ name: "both", steps: [{ fn: noop, alias: "x" }] })
    .build();
  assert.deepEqual({ ...built }, {
    name: "shape",
    steps: [
      { id: "s1", alias: "a", run: noop, config: { timeout: 5 } },
      { type: "forEach", id: "l1", alias: "each", items, run: { id: "s2", alias: "noop", run: noop }, parallel: true, concurrency: 2 },
      { type: "concurrent", id: "p1", alias: "both", steps: [{ id: "s3", alias: "x", run: noop }], continueOn: "all", onFailure: "fail" },
    ],
    inputSchema: schema,
    onError: noop,
    description: "d",
  });
});

await says("`compileWorkflow(def)` → {name, plan, actors, coordinatorActorRef, inputSchema, description}, with the original's plan and actor names", () => {
  const schema = z.object({});
  const pay = createWorkflow("payment").step("charge", noop);
  const compiled = compileWorkflow(
    createWorkflow("order")
      .input(schema)
      .description("d")
      .step({ alias: "check", fn: noop, maxAttempts: 2, actor: { options: { actionTimeout: 10, kept: true } } })
      .forEach({ name: "each", items: () => [], run: { fn: noop, alias: "one" }, parallel: true, concurrency: 3 })
      .parallel({ name: "tell", steps: [{ fn: noop, alias: "email" }] })
      .branch({ name: "decide", if: () => true, then: [{ fn: noop, alias: "yes" }] })
      .step(pay)
      .build(),
  );
  assert.deepEqual(Object.keys(compiled).sort(), ["actors", "coordinatorActorRef", "description", "inputSchema", "name", "plan"]);
  assert.deepEqual([compiled.name, compiled.coordinatorActorRef, compiled.description], ["order", "order_coordinator", "d"]);
  assert.equal(compiled.inputSchema, schema);
  const [check, each, tell, decide, nested] = plain(compiled.plan);
  assert.deepEqual(check, {
    type: "step",
    id: "s1",
    alias: "check",
    actorRef: "order_check",
    config: { maxAttempts: 2, actor: { options: { actionTimeout: 10, kept: true } } },
  });
  assert.deepEqual(each, {
    type: "loop",
    id: "l1",
    alias: "each",
    iteratorActorRef: "order__loop__each__iterator",
    loopCoordinatorActorRef: "order__loop__each__coordinator",
    run: [{ type: "step", id: "s2", alias: "one", actorRef: "order__loop__each__run__one" }],
    parallel: true,
    concurrency: 3,
  });
  assert.equal(tell.type, "parallel");
  assert.deepEqual([tell.continueOn, tell.onFailure, tell.parallelCoordinatorActorRef], ["all", "fail", "order__parallel__tell__coordinator"]);
  assert.deepEqual(tell.steps.map((step) => [step.type, step.alias]), [["step", "email"]]);
  assert.deepEqual([decide.type, nested.type, nested.alias], ["branch", "workflow", "payment"]);
  for (const name of ["order_check", "order_coordinator", "order__loop__each__iterator", "order__loop__each__coordinator", "order__loop__each__run__one", "order__parallel__tell__coordinator"])
    assert.ok(Object.hasOwn(compiled.actors, name), name);
  assert.deepEqual(planSchema.parse(compiled.plan), compiled.plan);
  assert.equal(planSchema.safeParse([{ type: "step" }]).success, false);
});

await says("a definition may be written by hand: it is compiled, checked and run like a built one", async () => {
  const hand = { name: "hand", steps: [{ id: "x9", alias: "a", run: () => "by hand", config: { timeout: 1000 } }] };
  assert.deepEqual(plain(compileWorkflow(hand).plan), [{ type: "step", id: "x9", alias: "a", actorRef: "hand_a", config: { timeout: 1000 } }]);
  await withEngine([hand], async (engine) => assert.equal((await outcome(engine, "hand")).results.a.result, "by hand"));
});

await says('compile refuses bad values: "invalid timeout", "actor.options.actionTimeout", "duplicate concurrent child alias", "step-only config"', () => {
  const step = (config) => ({ name: "w", steps: [{ id: "s1", alias: "a", run: noop, config }] });
  for (const timeout of [0, -1, Number.NaN, Infinity, "5"]) assert.throws(() => compileWorkflow(step({ timeout })), /invalid timeout/);
  for (const actionTimeout of [0, -1, "x"])
    assert.throws(() => compileWorkflow(step({ actor: { options: { actionTimeout } } })), /actor\.options\.actionTimeout/);
  const both = (steps) => ({ name: "w", steps: [{ type: "concurrent", id: "p1", alias: "c", steps, continueOn: "all", onFailure: "fail" }] });
  const child = (alias) => ({ id: "s1", alias, run: noop });
  assert.throws(() => compileWorkflow(both([child("x"), child("x")])), /duplicate concurrent child alias/);
  assert.throws(() => compileWorkflow(createWorkflow("w").concurrent([{ fn: noop, alias: "x" }, { fn: noop, alias: "x" }])), /duplicate concurrent child alias/);
  const inner = createWorkflow("inner").step(noop).build();
  assert.throws(() => compileWorkflow(both([{ type: "workflow", id: "w1", alias: "x", workflow: inner, timeout: 5 }])), /step-only config/);
  assert.throws(() => compileWorkflow(createWorkflow("w").parallel([{ run: inner, alias: "x", maxAttempts: 2 }])), /step-only config/);
  const changed = createWorkflow("w").step("a", noop).build();
  changed.steps[0].config = { timeout: -5 };
  assert.throws(() => compileWorkflow(changed), /invalid timeout/);
});

await says("names containing `__` are refused when built", () => {
  const name = createWorkflow("a__b").step(noop);
  assert.throws(() => name.build(), /a__b/);
  const alias = createWorkflow("w").step("c__d", noop);
  assert.throws(() => alias.build(), /c__d/);
  assert.throws(() => defineWorkflow("a__b", noop), /__/);
});

// --- what is refused, and what is told --------------------------------------------------------------------------

await says("`engine.run` on an unknown name: an error that names it and lists the available ones", async () => {
  await withEngine([defineWorkflow("known", noop), defineWorkflow("other", noop)], async (engine) => {
    await assert.rejects(engine.run("unknown"), (error) => ["unknown", "known", "other"].every((name) => error.message.includes(name)));
  });
});

await says('registering twice: "already registered"; names that meet: "Duplicate actor name"', () => {
  const twice = createWorkflow("twice").step(noop);
  twice.register();
  assert.throws(() => twice.register(), /already registered/);
  assert.throws(() => createWorkflow("twice").step(noop).register(), /already registered/);
  const registry = new WorkflowRegistry();
  const mine = createWorkflow("mine").step(noop);
  registry.register(mine);
  assert.throws(() => registry.register(mine), /already registered/);
  assert.throws(() => registry.register(createWorkflow("mine").step(noop)), /already registered/);
  assert.throws(() => rival(mine, mine), /already registered/);
  registry.register(createWorkflow("x").step("y_z", () => 1));
  assert.throws(() => registry.register(createWorkflow("x_y").step("z", () => 2)), /Duplicate actor name/);
  registry.register(twice); // registered in the process, and taken by a registry
});

await says("SDK events include the alias `workflow:cancelled`", async () => {
  await withEngine([createWorkflow("stuck").step(rivals.signalStep({ name: "never" }))], async (engine) => {
    const heard = [];
    engine.on("workflow:cancelled", (event) => heard.push(event.runId));
    const { runId } = await engine.run("stuck");
    await engine.cancel(runId);
    await eventually("the event", () => heard.includes(runId));
  });
});

await says("`rival serve` finds .ts, .js and .mjs files, starts a Node host for them, and restarts it if it dies", async () => {
  const server = await serve({
    "one.ts": "export const steps = [function pid(): number { return process.pid; }];\n",
    "two.js": "export const steps = [function two() { return 2; }];\n",
    "three.mjs": "export const steps = [function three() { return 3; }];\n",
  });
  try {
    await withEngine([{ url: server.url }], async (engine) => {
      const first = (await outcome(engine, "one")).results.pid.result;
      assert.notEqual(first, server.pid);
      assert.equal((await outcome(engine, "two")).results.two.result, 2);
      assert.equal((await outcome(engine, "three")).results.three.result, 3);
      process.kill(first, "SIGKILL");
      assert.notEqual((await outcome(engine, "one")).results.pid.result, first);
    });
  } finally {
    await server.stop();
  }
});

await says("a step that nobody offers waits, and `why` says `worker`; when somebody offers it, it runs", async () => {
  const server = await serve({ "asks.yaml": "name: asks\nsteps:\n  - it: { call: offered }\n" });
  try {
    await withEngine([{ url: server.url }], async (engine) => {
      await engine.run("asks", null, "asks-1");
      await eventually("why", async () => JSON.stringify(await engine.why("asks-1")).includes('"worker"'));
      assert.equal((await engine.get("asks").getOrCreate("asks-1").getState()).status, "running");
      writeFileSync("offers.mjs", "export function offered() { return 'here'; }\nexport const name = 'offers';\nexport const steps = [offered];\n");
      await registerWorkflowFile("offers.mjs");
      await withEngine([{ url: server.url }], async (offering) => {
        await offering.ready();
        assert.equal((await engine.wait("asks", "asks-1")).results.it.result, "here");
      });
    });
  } finally {
    await server.stop();
  }
});

console.log(`1..${count}`);
process.exit(failed > 0 ? 1 : 0);
