// reads.test.ts: which parts of the context a function may read; what is not understood reads everything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readsOf } from "../dist/worker/reads.js";

 
const show = (fn: (...args: never[]) => unknown): string => {
  const { members, steps, loop } = readsOf(fn);
  const list = (set: ReadonlySet<string> | undefined): string => (set === undefined ? "*" : [...set].sort().join(","));
  return `${list(members)} | ${list(steps)} | ${list(loop)}`;
};
const use = (..._values: unknown[]): void => {};

test("a function without parameters reads nothing", () => {
  assert.equal(show(() => 1), " |  | ");
  assert.equal(show(async function named() {}), " |  | ");
  assert.equal(show(function () {}), " |  | ");
  assert.equal(show({ method() {} }.method), " |  | ");
});

test("names in the parameter are what is read", () => {
  assert.equal(show(({ input }: any) => input), "input |  | ");
  assert.equal(show(async ({ input, steps }: any) => use(steps.find.result, steps.chop?.state, input)), "input,steps | chop,find | ");
  assert.equal(show(({ steps: all, loop: { item } }: any) => use(all.a, item)), "loop,steps | a | *");
  assert.equal(show(({ loop }: any) => use(loop.item, loop.index)), "loop |  | index,item");
  assert.equal(show(function tree({ lastStep }: any, _other?: unknown) { return lastStep; }), "lastStep |  | ");
  assert.equal(show(({ input = {} }: any) => input), "input |  | ");
});

test("what is handed on is read as a whole", () => {
  assert.equal(show(({ steps }: any) => use(steps)), "steps | * | ");
  assert.equal(show(({ steps }: any) => use({ ...steps })), "steps | * | ");
  assert.equal(show(({ steps }: any) => use(steps["a"])), "steps | * | ");
  assert.equal(show(({ steps }: any) => { const copy = steps; return copy.a; }), "steps | * | ");
  assert.equal(show((context: any) => use(context.input, context.log)), "input,log | * | *");
  assert.equal(show((context: any) => use(context)), "* | * | *");
  assert.equal(show((context: any) => { const { input, ...rest } = context; return use(input, rest); }), "* | * | *");
});

test("what is not understood reads everything", () => {
  assert.equal(show(({ input, ...rest }: any) => use(input, rest)), "* | * | *");
  assert.equal(show(use.bind(null)), "* | * | *");
  assert.equal(show(function () { return use(arguments); }), "* | * | *"); // eslint-disable-line prefer-rest-params
  assert.equal(show(({ ["input"]: x }: any) => x), "* | * | *");
  assert.equal(show(({ input = "a}b" }: any) => input), "* | * | *");
  assert.equal(show(Math.max as never), "* | * | *");
  assert.equal(show(new Function("c", "return eval('c')") as never), "* | * | *");
});

test("of iterations around the innermost, what is named", () => {
  const parent = (fn: (...args: never[]) => unknown): string => [...(readsOf(fn).parent ?? ["*"])].sort().join();
  assert.equal(parent(({ loop }: any) => loop.item), "");
  assert.equal(parent(({ loop }: any) => loop.parent.item + loop.parent?.parent.index), "index,item,parent");
  assert.equal(parent(({ loop }: any) => use(loop.parent)), "*");
  assert.equal(parent(({ loop: { parent: above } }: any) => above.item), "*");
  assert.equal(parent((context: any) => context.loop.parent.item), "*");
});
