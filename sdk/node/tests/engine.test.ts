// engine.test.ts: workflows of this process on the real engine.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createWorkflow, defineWorkflow, delayStep, httpStep, pending, Results, rival, signalStep, StepError, type Engine, type StepContext } from "rival";
import { z } from "zod";
import type { EngineChild } from "../dist/engine/child.js";

type Workflows = Parameters<typeof rival> extends (infer W)[] ? W : never;

async function withEngine(workflows: Workflows[], body: (engine: Engine) => Promise<void>): Promise<void> {
  const engine = rival(...(workflows as []));
  try {
    await body(engine);
  } finally {
    await engine.close();
  }
}

/** Run it and wait. */
async function outcome(engine: Engine, name: string, input?: unknown): Promise<Awaited<ReturnType<Engine["wait"]>>> {
  const { runId } = await engine.run(name, input);
  return engine.wait(name, runId, { timeoutMs: 30_000 });
}

test("steps run in order, see what came before, and their results are recorded", async () => {
  const seen: unknown[] = [];
  const workflow = createWorkflow("order")
    .input(z.object({ item: z.string(), count: z.coerce.number().default(2) }))
    .step("price", ({ input, lastStep }) => {
      seen.push(input, lastStep);
      return input.item.length * input.count;
    })
    .step("pay", async ({ steps, state, run, log }) => {
      log.info({ price: steps.price.result }, "paying");
      state.description = `Paid ${steps.price.result}`;
      seen.push(run.stepName, run.attempt, Object.keys(steps));
      return { paid: steps.price.result };
    })
    .step({ alias: "skip", fn: ({ state }) => void (state.skipped = true) });
  await withEngine([workflow], async (engine) => {
    const { runId, status } = await engine.run("order", { item: "desk", count: "3" });
    assert.equal(status, "running");
    assert.deepEqual(await engine.wait("order", runId), {
      runId,
      status: "completed",
      results: {
        price: { result: 12, state: {}, status: "completed" },
        pay: { result: { paid: 12 }, state: { description: "Paid 12" }, status: "completed" },
        skip: { result: null, state: { skipped: true }, status: "skipped" },
      },
    });
    assert.deepEqual(seen, [
      { item: "desk", count: 3 },
      { result: undefined, state: {}, alias: null, stepName: null },
      "pay",
      1,
      ["price"],
    ]);
    const logs = await engine.logs(runId);
    assert.deepEqual(
      logs.map(({ message, metadata, stepName, workflowId }) => ({ message, metadata, stepName, workflowId })),
      [{ message: "paying", metadata: { price: 12 }, stepName: "pay", workflowId: runId }],
    );
  });
});

test("refused input throws the ZodError, and there is no run", async () => {
  const workflow = createWorkflow("strict").input(z.object({ n: z.number().min(1) })).step("a", () => 1);
  await withEngine([workflow], async (engine) => {
    await assert.rejects(engine.run("strict", { n: 0 }), (error) => error instanceof z.ZodError && error.issues[0]?.path[0] === "n");
    await assert.rejects(engine.run("strict"), z.ZodError);
    await assert.rejects(engine.run("other"), { message: "there is no workflow 'other'; available: strict" });
    assert.deepEqual((await engine.list()).runs, []);
  });
});

test("errors: plain ones stop, step errors say what to do, handlers hear of it", async () => {
  const heard: unknown[] = [];
  let tries = 0;
  const workflow = createWorkflow("failing")
    .step("goesOn", () => {
      throw new StepError("not so bad", { behavior: "continue" });
    })
    .step("again", () => {
      if (++tries < 3) throw new StepError("busy", { behavior: "retry", maxAttempts: 3 });
      return tries;
    })
    .step({
      alias: "stops",
      fn: () => {
        throw new TypeError("broken");
      },
      onError: ({ error, failedStep }) => void heard.push(["step", error.message, failedStep.alias]),
    })
    .step("never", () => 1)
    .onError(({ error, failedStep, workflowState }) => {
      heard.push(["workflow", error.message, failedStep.stepName, Object.keys(workflowState.steps), workflowState.workflowName]);
    });
  await withEngine([workflow], async (engine) => {
    const result = await outcome(engine, "failing");
    assert.equal(result.status, "failed");
    assert.equal(result.failedStep, "stops");
    assert.equal(result.results.goesOn?.status, "failed");
    assert.equal(result.results.goesOn?.error?.message, "not so bad");
    assert.equal(result.results.again?.result, 3);
    assert.equal(result.results.never, undefined);
    assert.deepEqual(heard[0], ["step", "broken", "stops"]);
    assert.deepEqual((heard[1] as unknown[]).slice(0, 3), ["workflow", "broken", "stops"]);
    const state = await engine.state(result.runId);
    const failed = state.steps.find((step) => step.alias === "stops") as { error: { stack: string } };
    assert.match(failed.error.stack, /engine\.test\.ts:\d+/);
  });
});

test("forEach, loop, branch, concurrent and nested workflows", async () => {
  const inner = createWorkflow("inner")
    .input(z.object({ n: z.number() }))
    .step("double", ({ input }) => input.n * 2);
  const workflow = createWorkflow("flow")
    .step("numbers", () => [1, 2, 3])
    .forEach("each", {
      items: ({ steps }) => steps.numbers.result,
      run: ({ loop }: any) => loop.item * 10 + loop.index + loop.items.length,
      parallel: true,
      concurrency: 2,
      label: "number ${ .loop.item }",
    })
    .loop("count", { body: [{ fn: ({ loop }: StepContext) => loop!.index, alias: "i" }], until: ({ steps }) => steps.i!.result === 2 })
    .branch("which", { if: ({ steps }) => steps.numbers.result.length > 5, then: [{ fn: () => 1, alias: "many" }], else: [{ fn: () => 2, alias: "few" }] })
    .concurrent("both", [
      { fn: () => "a", alias: "left" },
      { fn: () => "b", alias: "right" },
    ])
    .workflow(inner, { input: ({ steps }: any) => ({ n: steps.numbers.result[2] }) })
    .step("when", { fn: () => 1, when: () => false } as never)
    .step("all", ({ steps }) => Object.keys(steps));
  await withEngine([workflow], async (engine) => {
    const { runId, results, status, error } = await outcome(engine, "flow");
    assert.equal(status, "completed", JSON.stringify(error));
    const { nodes } = await (engine as any).api.request("GET", `api/v1/runs/${runId}/nodes?parent=each`);
    assert.deepEqual(nodes.map((one: any) => one.label), ["number 1", "number 2", "number 3"]);
    assert.deepEqual(results.each?.result.iterations.map((one: any) => one.results.run.result), [13, 24, 35]);
    assert.equal(results.count?.result.iterations.length, 3);
    assert.equal(results.which?.result.taken, "else");
    assert.deepEqual([results.both?.result.left.result, results.both?.result.right.result], ["a", "b"]);
    assert.equal(results.inner?.result, 6);
    assert.equal(results.when?.status, "skipped");
    assert.deepEqual(results.all?.result, ["numbers", "each", "count", "which", "both", "inner", "when"]);
  });
});

test("an iteration sees those around it", async () => {
  const items = () => [["a", "b"], ["c"]];
  const seen: unknown[] = [];
  const workflow = createWorkflow("nested")
    .forEach("outer", {
      items,
      run: [
        {
          type: "forEach",
          alias: "inner",
          items: ({ loop }: StepContext) => loop!.item,
          run: [
            { fn: ({ loop }: StepContext) => `${loop!.parent!.index}${loop!.index}${loop!.item}${loop!.parent!.item.length}`, alias: "named" },
            { fn: (context: StepContext) => void seen.push(context.loop), alias: "whole" },
            { type: "loop", alias: "again", body: [{ fn: ({ loop: { parent } }: any) => [parent.item, parent.parent.items.length], alias: "third" }], until: () => true },
          ],
        },
      ],
    });
  await withEngine([workflow], async (engine) => {
    const { results, status, error } = await outcome(engine, "nested");
    assert.equal(status, "completed", JSON.stringify(error));
    const inner = results.outer?.result.iterations.flatMap((one: any) => one.results.inner.result.iterations);
    assert.deepEqual(inner.map((one: any) => one.results.named.result), ["00a2", "01b2", "10c1"]);
    assert.deepEqual(inner.map((one: any) => one.results.again.result.iterations[0].results.third.result), [["a", 2], ["b", 2], ["c", 2]]);
    assert.deepEqual(seen[1], { item: "b", index: 1, items: ["a", "b"], parent: { item: ["a", "b"], index: 0, items: items() } });
  });
});

test("predefined steps, with fields that are functions", async () => {
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ path: request.url }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const workflow = createWorkflow("predefined")
    .input(z.object({ id: z.string() }))
    .step(httpStep({ url: ({ input }) => `http://127.0.0.1:${port}/${input.id}` }))
    .step(delayStep({ milliseconds: ({ input }) => input.id.length }))
    .step(signalStep({ name: "go", alias: "answer" }))
    .step("end", ({ steps }) => [steps.httpRequest!.result.data.path, steps.delay!.result.delayedMs, steps.answer!.result]);
  await withEngine([workflow], async (engine) => {
    const { runId } = await engine.run("predefined", { id: "seven77" });
    await engine.signal(runId, "go", { by: "kim" });
    const { results, error } = await engine.wait("predefined", runId, { timeoutMs: 20_000 });
    const [path, delayed, answer] = (results.end?.result ?? []) as [string, number, unknown];
    assert.deepEqual([path, delayed >= 7, answer], ["/seven77", true, { by: "kim" }], JSON.stringify(error));
  });
  server.close();
});

test("functions in fields are called once, directly in concurrent too, and leave no step of their own", async () => {
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    const first = requests === 1;
    response.writeHead(first ? 503 : 200, { "content-type": "application/json" }).end(JSON.stringify({ path: request.url }));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const called: string[] = [];
  const inner = defineWorkflow("inner", { steps: [{ fn: ({ input }) => input, alias: "echo" }] });
  const made = createWorkflow("made")
    .step("one", () => 1)
    .step({
      alias: "ask",
      fn: httpStep({
        url: ({ lastStep }) => {
          called.push("url");
          return `http://127.0.0.1:${port}/${String(lastStep.result)}`;
        },
        headers: ({ steps }) => ({ "x-one": String(steps.one.result) }),
      }),
      maxAttempts: 2,
      backoffBaseMs: 1,
      description: ({ lastStep, steps }) => `${String(lastStep.alias)} ${String(steps.ask.result.data.path)}`,
    })
    .concurrent("both", [
      { fn: delayStep({ milliseconds: ({ steps }) => steps.one.result as number }), alias: "pause" },
      { fn: httpStep({ url: ({ steps }) => `http://127.0.0.1:${port}/both/${String(steps.one.result)}` }), alias: "get", when: () => true },
      { type: "workflow", workflow: inner, alias: "left", input: ({ steps }: StepContext) => ({ side: "left", one: steps.one?.result as unknown }) },
      { type: "workflow", workflow: inner, alias: "right", input: () => ({ side: "right" }) },
      { type: "workflow", workflow: inner, alias: "off", when: ({ steps }: StepContext) => steps.one?.result === 2 },
      {
        type: "workflow",
        workflow: inner,
        alias: "told",
        input: () => 5,
        when: async () => true,
        description: ({ lastStep }: StepContext) => `echoed ${String(lastStep.result.echo.result)}`,
      },
    ])
    .branch("way", { if: () => true, then: [() => 2], description: ({ lastStep }) => `took ${String(lastStep.result.taken)}` })
    .step({ alias: "plain", fn: () => 3, description: "costs ${ 3 }" })
    .step({ alias: "undescribed", fn: () => 4, description: () => { throw new Error("no words"); } })
    .step({ alias: "own", fn: ({ state }) => void (state.description = "its own"), description: () => "never" });
  const bad = createWorkflow("bad")
    .step({ alias: "ask", fn: httpStep({ url: () => { throw new Error("no url"); } }), maxAttempts: 3, onError: () => called.push("onError") });
  try {
    await withEngine([made, bad], async (engine) => {
      const { status, results, error } = await outcome(engine, "made");
      assert.equal(status, "completed", JSON.stringify(error));
      assert.deepEqual(Object.keys(results), ["one", "ask", "both", "way", "plain", "undescribed", "own"]);
      assert.deepEqual(called, ["url"]);
      assert.equal(results.ask?.result.data.path, "/1");
      assert.equal(results.ask?.state.description, "ask /1");
      const both = results.both?.result;
      assert.ok(both.pause.result.delayedMs >= 1);
      assert.equal(both.get.result.data.path, "/both/1");
      assert.deepEqual(both.left.result.echo.result, { side: "left", one: 1 });
      assert.deepEqual(both.right.result.echo.result, { side: "right" });
      assert.deepEqual(both.off, { result: null, state: {}, status: "skipped" });
      assert.deepEqual(both.told, {
        result: { echo: { result: 5, state: {}, status: "completed" } },
        state: { description: "echoed 5" },
        status: "completed",
      });
      assert.equal(results.way?.state.description, "took then");
      assert.equal(results.plain?.state.description, "costs ${ 3 }");
      assert.deepEqual(results.undescribed, { result: 4, state: {}, status: "completed" });
      assert.equal(results.own?.state.description, "its own");

      const failed = await outcome(engine, "bad");
      assert.equal(failed.failedStep, "ask");
      assert.equal(failed.failedPath, "ask");
      assert.match(JSON.stringify(failed.error), /no url/);
      assert.deepEqual(called, ["url", "onError"]);
    });
  } finally {
    server.close();
  }
});

test("a payload has to fit the schema of its signal; without one in time the default is the answer", async () => {
  const asks = createWorkflow("asks")
    .step(signalStep({ name: "vote", schema: z.object({ yes: z.boolean() }) }))
    .step(signalStep({ name: "late", alias: "late", timeout: 1, default: { yes: false } }));
  await withEngine([asks], async (engine) => {
    const { runId } = await engine.run("asks");
    await assert.rejects(engine.signal(runId, "vote", { yes: "perhaps" }), /yes/);
    await engine.signal(runId, "vote", { yes: true });
    const { results } = await engine.wait("asks", runId);
    assert.deepEqual([results.signal?.result, results.late?.result], [{ yes: true }, { yes: false }]);
  });
});

test("timeouts abort the signal; cancel ends the run at once", async () => {
  const aborted: string[] = [];
  const hangs = ({ signal, run }: StepContext) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        aborted.push(run.stepName);
        resolve("too late");
      });
    });
  const slow = createWorkflow("slow").step({ alias: "late", fn: hangs, timeout: 50 });
  const endless = createWorkflow("endless").step("hang", hangs);
  await withEngine([slow, endless], async (engine) => {
    const result = await outcome(engine, "slow");
    assert.equal(result.status, "failed");
    assert.match(String(result.results.late?.error?.message), /50 ms|timed out|timeout/i);
    const { runId } = await engine.run("endless");
    while ((await engine.state(runId)).steps.length === 0) await new Promise((done) => setTimeout(done, 10));
    await engine.cancel(runId);
    assert.equal((await engine.wait("endless", runId)).status, "cancelled");
    while (aborted.length < 2) await new Promise((done) => setTimeout(done, 10));
    assert.deepEqual(aborted, ["late", "hang"]);
  });
});

test("a pending step is completed from outside; Results are checked", async () => {
  const results = Results({ good: z.object({ n: z.number() }), bad: z.object({ n: z.number() }) });
  const workflow = defineWorkflow("checked", {
    steps: [
      { fn: () => pending("handle-7"), alias: "later" },
      { fn: ({ steps }: StepContext) => ({ n: steps.later!.result, more: 1 }), alias: "good" },
      { fn: () => ({ n: "x" }), alias: "bad" },
    ],
    results,
  });
  await withEngine([workflow], async (engine) => {
    const { runId } = await engine.run("checked");
    for (;;) {
      try {
        await engine.complete(runId, "handle-7", { result: 5 });
        break;
      } catch {
        await new Promise((done) => setTimeout(done, 10));
      }
    }
    const { results: all, failedStep } = await engine.wait("checked", runId);
    assert.deepEqual(all.good?.result, { n: 5 });
    assert.equal(failedStep, "bad");
    assert.match(String(all.bad?.error?.message), /does not fit its schema: n/);
  });
});

test("a run goes on after the engine is killed, and completed steps are not repeated", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rival-kill-"));
  const calls: Record<string, number> = { a: 0, b: 0, c: 0 };
  let gate: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (gate = resolve));
  const workflow = createWorkflow("survivor")
    .step("a", () => ++calls.a!)
    .step("b", async () => {
      calls.b!++;
      await opened;
      return "b";
    })
    .step("c", ({ steps }) => [++calls.c!, steps.a.result]);
  const engine = rival({ store: join(folder, "kept.db") }, workflow);
  try {
    const { runId } = await engine.run("survivor");
    while (calls.b === 0) await new Promise((done) => setTimeout(done, 5));
    process.kill((engine as unknown as { child: EngineChild }).child.pid!, "SIGKILL");
    setTimeout(gate, 100);
    const { status, results } = await engine.wait("survivor", runId, { timeoutMs: 30_000 });
    assert.equal(status, "completed");
    assert.deepEqual(results.c?.result, [1, 1]);
    assert.equal(calls.a, 1);
  } finally {
    await engine.close();
    await rm(folder, { recursive: true });
  }
});

test("ten thousand items go through, and long results are seen by later steps", async () => {
  const workflow = createWorkflow("many")
    .step("items", () => Array.from({ length: 10_000 }, (_, i) => ({ i, text: "x".repeat(100) })))
    .forEach("each", { items: ({ steps }) => steps.items.result, run: ({ loop }: any) => loop.item.i, parallel: true })
    .step("sum", ({ steps }) => steps.each.result.iterations.reduce((sum: number, one: any) => sum + one.results.run.result, 0));
  await withEngine([workflow], async (engine) => {
    const { runId } = await engine.run("many");
    const { results, error } = await engine.wait("many", runId, { timeoutMs: 60_000 });
    assert.equal(results.sum?.result, 49_995_000, JSON.stringify(error));
  });
});

// Last: what is registered here is in every engine after it.
test("a workflow that was registered in the process, with functions in fields, is given to an engine, nested twice and listed once", async () => {
  const inner = createWorkflow("registered-inner").step("rest", delayStep({ milliseconds: () => 1 })).build();
  const outer = createWorkflow("registered-outer").workflow(inner, { alias: "first" }).workflow(inner, { alias: "second" });
  outer.register();
  await withEngine([outer], async (engine) => {
    assert.equal((await outcome(engine, "registered-outer")).status, "completed");
    const names = (await engine.workflows()).map((one) => one.name);
    assert.equal(names.filter((name) => name === "registered-outer").length, 1);
  });
});
