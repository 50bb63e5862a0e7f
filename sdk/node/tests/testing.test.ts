// testing.test.ts: the testing kit: skipped time, replaced steps, crashes, seeds.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { createWorkflow, delayStep, httpStep, pending, RunTimeoutError, signalStep, StepError, testEngine, type StepContext, type TestEngine, type TestOptions, type WorkflowDefinition } from "rival";
import { z } from "zod";

type Workflow = WorkflowDefinition | { build(): WorkflowDefinition };
const DAY = 24 * 3600 * 1000;

async function withKit(options: TestOptions, workflows: Workflow[], body: (engine: TestEngine) => Promise<void>): Promise<void> {
  const engine = testEngine(options, ...workflows);
  try {
    await body(engine);
  } finally {
    await engine.close();
  }
}

test("a month of delays and retries is skipped", async () => {
  const attempts: number[] = [];
  const workflow = createWorkflow("month")
    .input(z.object({ n: z.coerce.number().default(2) }))
    .step(delayStep({ seconds: 30 * 24 * 3600 }))
    .step({
      alias: "busy",
      fn: ({ run }) => {
        attempts.push(run.attempt);
        if (run.attempt < 4) throw new StepError("busy", { behavior: "retry", maxAttempts: 4, backoff: "exponential" });
        return "done";
      },
      backoffBaseMs: 3_600_000,
      maxBackoffMs: DAY,
    })
    .step("double", ({ input, steps }) => [input.n * 2, steps.busy.result, Object.keys(steps)]);
  await withKit({ startMs: Date.UTC(2030, 0, 1) }, [workflow], async (engine) => {
    const { runId, status } = await engine.run("month", { n: "3" });
    assert.equal(status, "running");
    assert.equal(await engine.now(), Date.UTC(2030, 0, 1));
    await engine.advance(DAY);
    assert.equal((await engine.state(runId)).status, "running");
    await assert.rejects(engine.wait("month", runId, { timeoutMs: DAY }), RunTimeoutError);
    const outcome = await engine.wait("month", runId, { timeoutMs: 60 * DAY });
    assert.equal(outcome.status, "completed", JSON.stringify(outcome));
    assert.deepEqual(outcome.results.double?.result, [6, "done", ["delay", "busy"]]);
    assert.deepEqual(attempts, [1, 2, 3, 4]);
    assert.equal(await engine.now(), Date.UTC(2030, 0, 1) + 30 * DAY + 7 * 3_600_000);
    await assert.rejects(engine.run("month", { n: "x" }), z.ZodError);
    await assert.rejects(engine.run("year"), { message: "there is no workflow 'year'; available: month" });
  });
});

test("steps of any kind are replaced; one that takes too long times out", async () => {
  const workflow = createWorkflow("shop")
    .step(httpStep({ url: "https://pay.example/charge" }))
    .step({ alias: "slow", fn: () => "quick", timeout: 1000, onTimeout: "retry", maxAttempts: 2 })
    .onError(({ error, failedStep, workflowState }) => {
      heard.push([error.message.includes("1000 ms") || error.message, failedStep.alias, Object.keys(workflowState.steps)]);
    });
  const heard: unknown[] = [];
  await withKit({}, [workflow], async (engine) => {
    await engine.replace("httpRequest", ({ run }) => ({ status: 200, data: run.path }));
    const first = await engine.run("shop");
    const good = await engine.wait("shop", first.runId);
    assert.deepEqual([good.status, good.results.httpRequest?.result.data, good.results.slow?.result], ["completed", "httpRequest", "quick"]);
    await engine.replace("slow", () => {
      engine.takes(5000);
      return "late";
    });
    const bad = await engine.wait("shop", (await engine.run("shop")).runId);
    assert.deepEqual([bad.status, bad.failedStep], ["failed", "slow"]);
    assert.equal(heard.length, 1);
    await engine.replace("slow");
    assert.equal((await engine.wait("shop", (await engine.run("shop")).runId)).status, "completed");
    assert.throws(() => engine.takes(1), /no step is running/);
  });
});

test("after a crash what was on disk goes on, and completed steps are not repeated", async () => {
  const calls: string[] = [];
  const workflow = createWorkflow("survivor")
    .step("a", () => void calls.push("a"))
    .step(signalStep({ name: "go", alias: "answer" }))
    .step("later", () => pending("handle-1"))
    .step("b", ({ steps }) => {
      calls.push("b");
      return [steps.answer!.result, steps.later.result];
    });
  await withKit({}, [workflow], async (engine) => {
    const instance = engine.get("survivor").getOrCreate("s-1");
    await instance.run("s-1");
    await engine.advance(0);
    await engine.crash();
    await engine.signal("s-1", "go", 7);
    await engine.advance(0);
    await engine.crash();
    await engine.complete("s-1", "handle-1", { result: 8 });
    const { status, results } = await instance.wait();
    assert.deepEqual([status, results.b?.result, calls, await engine.crashes()], ["completed", [7, 8], ["a", "b"], 2]);
    assert.equal((await instance.getState()).status, "completed");
  });
});

test("a seed repeats the order of steps and the crashes; whatever it is, the outcome is the same", async () => {
  const run = async (seed: number): Promise<{ order: string; crashes: number; now: number }> => {
    const order: string[] = [];
    const workflow = createWorkflow("seeded")
      .forEach("outer", {
        items: () => ["a", "b", "c"],
        parallel: true,
        run: [
          { fn: ({ loop }: StepContext) => void order.push(loop!.item), alias: "first" },
          { type: "forEach", alias: "inner", items: () => [1, 2], run: ({ loop }: StepContext) => `${loop!.parent!.item}${loop!.item}${loop!.parent!.items.length}` },
        ],
      })
      .step("sum", ({ steps }) => steps.outer.result.iterations.flatMap((one: any) => one.results.inner.result.iterations.map((two: any) => two.results.run.result)));
    let result = { order: "", crashes: 0, now: 0 };
    await withKit({ seed, crashOneIn: 5 }, [workflow], async (engine) => {
      const { runId } = await engine.run("seeded");
      const { status, results } = await engine.wait("seeded", runId);
      assert.equal(status, "completed");
      assert.deepEqual(results.sum?.result, ["a13", "a23", "b13", "b23", "c13", "c23"]);
      result = { order: order.join(""), crashes: await engine.crashes(), now: await engine.now() };
    });
    return result;
  };
  const runs = [];
  for (let seed = 1; seed <= 6; seed++) runs.push(await run(seed));
  assert.deepEqual(await run(3), runs[2]);
  assert.ok(runs.some(({ crashes }) => crashes > 0), JSON.stringify(runs));
  assert.ok(new Set(runs.map(({ order }) => order)).size > 1, JSON.stringify(runs));
});

test("a step may use the engine, and may not crash it", async () => {
  const inner = createWorkflow("inner").step("one", () => 1);
  const outer = createWorkflow("outer").step("calls", async ({ log }) => {
    log.info("asks");
    await assert.rejects(kit!.crash(), /cannot be called by a step/);
    const { runId } = await kit!.run("inner");
    return (await kit!.wait("inner", runId)).results.one?.result;
  });
  let kit: TestEngine | undefined;
  await withKit({}, [inner, outer], async (engine) => {
    kit = engine;
    const { runId } = await engine.run("outer");
    assert.equal((await engine.wait("outer", runId)).results.calls?.result, 1);
    await engine.cancel(runId);
  });
  await assert.rejects(kit!.now(), /has been closed/);
});

test("the program behind it says what it is for", () => {
  const { status, stderr } = spawnSync(process.env.RIVAL_BIN!, ["kit"], { encoding: "utf8" });
  assert.deepEqual([status, stderr], [2, "usage: rival kit SOCKET (for the npm package)\n"]);
  assert.equal(spawnSync(process.env.RIVAL_BIN!, ["kit", "/nowhere/at/all"]).status, 1);
});
