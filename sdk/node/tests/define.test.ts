// define.test.ts: what users write becomes definitions, plans and names.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compileWorkflow,
  createWorkflow,
  defineWorkflow,
  delayStep,
  httpStep,
  planSchema,
  Results,
  signalStep,
  StepError,
  workflow,
  WorkflowDefinitionError,
  type StepContext,
} from "rival";
import { z } from "zod";
import { literal, lowerWorkflow } from "../dist/define/lower.js";
import { jsonSchemaOf } from "../dist/define/schema.js";

const findTree = () => ({ treeId: "oak-123" });
const chopTree = ({ steps }: StepContext) => steps.findTree!.result.treeId;
const noop = () => null;

/** The messages of a workflow that is refused, by path. */
function mistakes(build: () => unknown): string[] {
  try {
    build();
  } catch (error) {
    assert.ok(error instanceof WorkflowDefinitionError, String(error));
    return error.violations.map((v) => (v.path ? `${v.path}: ${v.message}` : v.message));
  }
  assert.fail("it was accepted");
}

test("a built definition has ids, aliases and configs", () => {
  const definition = createWorkflow("treeProcessing")
    .description("Trees to lumber")
    .steps([findTree, { fn: chopTree, timeout: 60000, onTimeout: "retry", maxAttempts: 3 }])
    .forEach({ name: "planks", items: () => [1, 2], run: noop, parallel: true, concurrency: 2 })
    .concurrent({ name: "notify", steps: [noop, { fn: noop, alias: "sms" }] })
    .build();
  assert.deepEqual(JSON.parse(JSON.stringify(definition)), {
    name: "treeProcessing",
    description: "Trees to lumber",
    steps: [
      { id: "s1", alias: "findTree" },
      { id: "s2", alias: "chopTree", config: { timeout: 60000, onTimeout: "retry", maxAttempts: 3 } },
      {
        type: "forEach",
        id: "l1",
        alias: "planks",
        run: { id: "s3", alias: "noop" },
        parallel: true,
        concurrency: 2,
      },
      {
        type: "concurrent",
        id: "p1",
        alias: "notify",
        steps: [
          { id: "s4", alias: "noop" },
          { id: "s5", alias: "sms" },
        ],
        continueOn: "all",
        onFailure: "fail",
      },
    ],
  });
});

test("the compiled plan has the original's shape and actor names", () => {
  const pay = createWorkflow("payment").step("charge", noop);
  const compiled = compileWorkflow(
    createWorkflow("order")
      .input(z.object({ id: z.string() }))
      .step({ alias: "check", fn: noop, timeout: 5, actor: { options: { actionTimeout: 10 } } })
      .forEach({ name: "each", items: () => [], run: createWorkflow("inner").step("one", noop).step("two", noop) })
      .parallel({ name: "tell", steps: [{ fn: noop, alias: "email" }, pay] })
      .branch({ name: "decide", if: () => true, then: [{ fn: noop, alias: "yes" }] })
      .loop({ name: "poll", body: [{ fn: noop, alias: "look" }], until: () => true })
      .step(pay),
  );
  assert.equal(compiled.coordinatorActorRef, "order_coordinator");
  assert.deepEqual(
    JSON.parse(JSON.stringify(compiled.plan)),
    [
      {
        type: "step",
        id: "s1",
        alias: "check",
        actorRef: "order_check",
        config: { timeout: 5, actor: { options: { actionTimeout: 10 } } },
      },
      {
        type: "loop",
        id: "l1",
        alias: "each",
        iteratorActorRef: "order__loop__each__iterator",
        loopCoordinatorActorRef: "order__loop__each__coordinator",
        run: [
          { type: "step", id: "s1", alias: "one", actorRef: "order__loop__each__run__one" },
          { type: "step", id: "s2", alias: "two", actorRef: "order__loop__each__run__two" },
        ],
      },
      {
        type: "parallel",
        id: "p1",
        alias: "tell",
        continueOn: "all",
        onFailure: "fail",
        parallelCoordinatorActorRef: "order__parallel__tell__coordinator",
        steps: [
          { type: "step", id: "s2", alias: "email", actorRef: "order__parallel__tell__step__email" },
          {
            type: "workflow",
            id: "w1",
            alias: "payment",
            workflow: "payment",
            coordinatorActorRef: "payment_coordinator",
            plan: [{ type: "step", id: "s1", alias: "charge", actorRef: "payment_charge" }],
          },
        ],
      },
      {
        type: "branch",
        id: "b1",
        alias: "decide",
        conditionActorRef: "order__branch__decide__condition",
        branchCoordinatorActorRef: "order__branch__decide__coordinator",
        then: [{ type: "step", id: "s3", alias: "yes", actorRef: "order__branch__decide__then__yes" }],
        else: [],
      },
      {
        type: "loop",
        id: "l2",
        alias: "poll",
        conditionActorRef: "order__loop__poll__condition",
        test: "until",
        loopCoordinatorActorRef: "order__loop__poll__coordinator",
        run: [{ type: "step", id: "s4", alias: "look", actorRef: "order__loop__poll__run__look" }],
      },
      {
        type: "workflow",
        id: "w2",
        alias: "payment",
        workflow: "payment",
        coordinatorActorRef: "payment_coordinator",
        plan: [{ type: "step", id: "s1", alias: "charge", actorRef: "payment_charge" }],
      },
    ],
  );
  assert.equal(compiled.actors.order_check?.run, noop);
  assert.deepEqual(compiled.actors.order_check?.options, { actionTimeout: 10 });
  assert.deepEqual(planSchema.parse(compiled.plan), compiled.plan);
  assert.equal(planSchema.safeParse([{ type: "step", id: "s1", alias: "a" }]).success, false);
});

test("a definition that was changed or written by hand is checked when it is compiled, and keeps its ids", () => {
  const built = createWorkflow("w")
    .step("a", noop)
    .forEach("each", { items: [1], run: [noop, createWorkflow("inner").step(noop)] })
    .concurrent("both", [{ alias: "list", steps: [noop] }, workflow("byName")])
    .branch("b", { if: noop, then: [noop] })
    .loop("l", { body: noop, until: noop })
    .build();
  const again = createWorkflow("w").steps(built.steps).build(); // what was built can be written again
  assert.deepEqual(again, built);
  assert.deepEqual(compileWorkflow(again), compileWorkflow(built));
  const hand = { name: "w", steps: [{ id: "mine", alias: "a", run: noop, config: { timeout: 5 } }] };
  assert.equal(compileWorkflow(hand).plan[0]!.id, "mine");
  hand.steps[0]!.config.timeout = -1;
  assert.match(mistakes(() => compileWorkflow(hand))[0]!, /^a: invalid timeout -1/);
  const twice = { name: "w", steps: [{ id: "x", alias: "a", run: noop }, { id: "x", alias: "b", run: noop }] };
  assert.deepEqual(mistakes(() => compileWorkflow(twice)), ["b: duplicate id 'x': another node of this workflow has it"]);
  const before = { name: "w", steps: [{ alias: "a", run: noop }, { id: "s1", alias: "b", run: noop }] } as typeof twice;
  assert.deepEqual(compileWorkflow(before).plan.map((node) => node.id), ["s1", "s2"]); // the first was given s1
  const five = { name: "w", steps: [{ alias: "a", run: noop, config: 5 }] } as unknown as typeof hand;
  assert.deepEqual(mistakes(() => compileWorkflow(five)), ["a: invalid config: must be an object, not 5"]);
  assert.throws(() => compileWorkflow({ name: "w" } as never), /a workflow is needed/);
});

test("implied aliases are numbered, explicit ones must be unique", () => {
  const aliases = createWorkflow("w")
    .steps([noop, noop, httpStep({ url: "http://x" }), delayStep({ seconds: 1 }), noop, () => 1])
    .build()
    .steps.map((step) => step.alias);
  assert.deepEqual(aliases, ["noop", "noop_2", "httpRequest", "delay", "noop_3", "step"]);
  assert.deepEqual(mistakes(() => createWorkflow("w").step("a", noop).step("a", noop).build()), [
    "a: alias 'a' must be unique in its sequence",
  ]);
  assert.deepEqual(
    mistakes(() =>
      createWorkflow("w")
        .concurrent("c", [
          { fn: noop, alias: "x" },
          { fn: noop, alias: "x" },
        ])
        .build(),
    ),
    ["c:x: duplicate concurrent child alias 'x': it must be unique"],
  );
});

test("everything that is wrong is told at once, with its place", () => {
  const found = mistakes(() =>
    createWorkflow("w")
      .step({ alias: "a", fn: noop, timeout: 0 })
      .step({ alias: "b", fn: noop, timeout: Number.NaN, backoff: "cubic" as "linear", maxAttempts: 0 })
      .step({ alias: "c", fn: noop, actor: { options: { actionTimeout: -1 } } })
      .step({ alias: "d", fn: 5 as unknown as () => void })
      .step({ alias: "e__f", fn: noop })
      .step({ alias: "g", fn: noop, retires: 3 } as unknown as { alias: string; fn: () => void })
      .forEach({ name: "h", items: 3 as unknown as unknown[], run: noop, concurrency: 0, label: (() => "x") as never })
      .concurrent("i", [{ fn: createWorkflow("n").step(noop), alias: "j", timeout: 5 } as never])
      .loop({ name: "k", body: [noop] })
      .build(),
  );
  assert.deepEqual(found, [
    "a: invalid timeout 0: must be milliseconds, above 0 and at most a hundred years",
    "b: invalid timeout NaN: must be milliseconds, above 0 and at most a hundred years",
    "b: invalid maxAttempts 0: must be an integer, at least 1",
    "b: invalid backoff 'cubic': must be linear or exponential",
    "c: invalid actor.options.actionTimeout -1: must be milliseconds, above 0",
    "d: 'fn' must be a function or a predefined step, not 5",
    "e__f: invalid alias 'e__f': must not contain '__'",
    "g: unknown key 'retires'",
    "h: invalid items: must be a function that returns an array, or an array, not 3",
    "h: invalid concurrency 0: must be an integer, at least 1",
    "h: invalid label: must be a text with ${ … }, not a function",
    "i:j: step-only config: 'timeout' is for steps, not for a workflow",
    "k: needs exactly one of 'while' and 'until', a function",
  ]);
});

test("bad names, empty workflows and workflows in themselves are refused", () => {
  const named = createWorkflow("a__b").step("c__d", noop); // told with the rest, when it is built
  assert.match(mistakes(() => named.build()).join(), /invalid name 'a__b': must not contain '__'.*invalid alias 'c__d'/);
  assert.match(mistakes(() => createWorkflow("w").build())[0]!, /no steps/);
  const inner = createWorkflow("loopy").step("a", noop).build();
  const outer = defineWorkflow("outer", { steps: [inner] });
  assert.doesNotThrow(() => lowerWorkflow(outer));
  inner.steps.push({ type: "workflow", id: "w1", alias: "again", workflow: outer });
  assert.match(mistakes(() => lowerWorkflow(outer))[0]!, /contains itself/);
  assert.match(mistakes(() => compileWorkflow(outer))[0]!, /contains itself/);
});

test("names that meet are refused as duplicates", () => {
  const a = createWorkflow("x").step("coordinator", noop);
  assert.match(mistakes(() => compileWorkflow(a))[0]!, /Duplicate actor name 'x_coordinator'/);
  const b = createWorkflow("y")
    .step(createWorkflow("n").step("s", () => 1))
    .step(createWorkflow("n").step("s", () => 2));
  assert.match(mistakes(() => compileWorkflow(b))[0]!, /Duplicate actor name 'n_s'/);
});

test("the engine's plan names functions, keeps texts, and nests in place", () => {
  const tell = () => undefined;
  const { plan, functions } = lowerWorkflow(
    createWorkflow("w")
      .input(z.object({ n: z.number().default(3) }))
      .step({ alias: "a", fn: noop, timeout: 9, onError: tell, needs: ["b"], actor: {} })
      .step(httpStep({ url: ({ input }) => `http://x/${String(input.n)}`, body: { text: "${ .input }" } }))
      .forEach("each", { items: ["${x}", 2], run: createWorkflow("inner").step("one", noop) })
      .workflow(createWorkflow("pay").input(z.object({})).step("charge", noop).onError(tell), { input: () => ({}) })
      .branch("b", { if: () => true, then: [{ fn: noop, alias: "yes", when: () => true }] })
      .workflow("byName")
      .onError(tell)
      .build(),
  );
  assert.deepEqual(plan, {
    name: "w",
    input: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { n: { type: "number", default: 3 } },
    },
    steps: [
      {
        type: "step",
        alias: "a",
        kind: "function",
        name: "w_a",
        timeout: 9,
        needs: ["b"],
        onError: { kind: "function", name: "w_a__onError" },
      },
      {
        type: "step",
        alias: "httpRequest",
        kind: "http",
        with: { body: { text: "$${ .input }" } },
        input: { fn: "w_httpRequest__input" },
      },
      {
        type: "forEach",
        alias: "each",
        items: ["$${x}", 2],
        run: {
          type: "workflow",
          name: "inner",
          steps: [{ type: "step", alias: "one", kind: "function", name: "w__loop__each__run__one" }],
        },
      },
      {
        type: "workflow",
        alias: "pay",
        name: "pay",
        inputSchema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties: {} },
        steps: [{ type: "step", alias: "charge", kind: "function", name: "pay_charge" }],
        onError: { kind: "function", name: "pay__onError" },
        input: { fn: "w__workflow__pay__input" },
      },
      {
        type: "branch",
        alias: "b",
        if: { fn: "w__branch__b__condition" },
        then: [
          {
            type: "step",
            alias: "yes",
            when: { fn: "w__branch__b__then__yes__when" },
            kind: "function",
            name: "w__branch__b__then__yes",
          },
        ],
      },
      { type: "workflow", alias: "byName", name: "byName" },
    ],
    onError: { kind: "function", name: "w__onError" },
  });
  assert.equal(functions.get("w_a__onError")?.fn, tell);
  assert.deepEqual([...functions.keys()].sort(), [
    "pay__onError",
    "pay_charge",
    "w__branch__b__condition",
    "w__branch__b__then__yes",
    "w__branch__b__then__yes__when",
    "w__loop__each__run__one",
    "w__onError",
    "w__workflow__pay__input",
    "w_a",
    "w_a__onError",
    "w_httpRequest__input",
  ]);
});

test("a literal with templates in it stays a literal", () => {
  assert.deepEqual(literal({ a: "${x}", b: ["$${y}", 1, null] }), { a: "$${x}", b: ["$$${y}", 1, null] });
});

test("results: schemas reach their steps, and unknown ones are refused", () => {
  const results = Results({ findTree: z.object({ treeId: z.string() }) });
  const lowered = lowerWorkflow(createWorkflow("w").step(findTree).results(results).build());
  assert.equal(lowered.functions.get("w_findTree")?.result, results.schemas.findTree);
  assert.match(mistakes(() => lowerWorkflow(createWorkflow("w").step(noop).results(results).build()))[0]!, /no step 'findTree'/);
  const typed = Results<{ findTree: { treeId: string } }>();
  assert.equal(typed.schemas, undefined);
  const read = ({ steps }: { steps: typeof typed.Steps }): string => steps.findTree.result.treeId;
  assert.equal(read({ steps: { findTree: { result: { treeId: "x" }, state: {}, status: "completed" } } }), "x");
});

test("Zod becomes JSON Schema of what may be sent", () => {
  const schema = z.object({ id: z.uuid(), n: z.coerce.number().describe("how many"), when: z.date().optional() });
  const json = jsonSchemaOf(schema) as { properties: Record<string, Record<string, unknown>>; required: string[] };
  assert.equal(json.properties.id?.type, "string");
  assert.deepEqual(json.properties.n, { description: "how many" });
  assert.deepEqual(json.properties.when, {});
  assert.deepEqual(jsonSchemaOf({ type: "object" }), { type: "object" });
});

test("a builder that was built takes no more", () => {
  const builder = createWorkflow("w").step(noop);
  assert.equal(builder.build(), builder.build());
  assert.throws(() => builder.step(noop), /has been built/);
});

test("predefined steps and step errors refuse what they do not know", () => {
  assert.throws(() => httpStep({ url: "x", metod: "GET" } as never), /unknown option 'metod'/);
  assert.throws(() => delayStep({}), /exactly one of/);
  assert.throws(() => delayStep({ seconds: -1 }), /invalid seconds -1/);
  assert.throws(() => delayStep({ seconds: 1, duration: "1s" }), /exactly one of/);
  for (const duration of ["", "5", "1x", "m", "-1s", "1.2345s", "1h 30m", -1, Number.NaN])
    assert.throws(() => delayStep({ duration }), /invalid duration/);
  for (const [duration, ms] of [["1h30m", 5_400_000], ["250ms", 250], ["1.5s", 1500], ["2d", 172_800_000], ["1.005s", 1005], ["8.2h", 29_520_000], [7, 7]] as const)
    assert.deepEqual(delayStep({ duration }).options, { milliseconds: ms });
  assert.throws(() => signalStep({ name: "a", default: () => 1 }), /'default' must be a value/);
  assert.throws(() => signalStep({ name: () => "a", schema: z.object({}) }), /'name' must be a text/);
  assert.deepEqual(signalStep({ name: "a", schema: z.string() }).options.schema, { $schema: "https://json-schema.org/draft/2020-12/schema", type: "string" });
  assert.throws(() => new StepError("x", { behavior: "explode" as "stop" }), /invalid behavior 'explode'/);
  assert.equal(new StepError("x").behavior, "stop");
  assert.throws(() => workflow(5 as never), /a file, the name of a workflow, or a workflow/);
});

test("types: input and results of steps before are inferred", () => {
  const built = createWorkflow("w")
    .input(z.object({ treeType: z.string() }))
    .step("find", ({ input }) => ({ id: input.treeType.toUpperCase() }))
    .step({ alias: "chop", fn: async ({ steps }) => ({ pieces: steps.find.result.id.length }) })
    .step("sum", ({ steps }) => {
      const pieces: number = steps.chop.result.pieces;
      // @ts-expect-error there is no such key in the result of `find`
      return pieces + Number(steps.find.result.nothing);
    })
    .build();
  assert.equal(built.steps.length, 3);
});
