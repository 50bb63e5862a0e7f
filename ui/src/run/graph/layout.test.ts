import { expect, test } from "vitest";
import type { PlanNode } from "../../api/types";
import { boxesOf, type Box } from "../plan";
import { layoutOf, openAtFirst, type Placed } from "./layout";

const step = (alias: string): PlanNode => ({ type: "step", alias, kind: "value" });
const top = boxesOf({
  name: "p",
  steps: [
    step("a"),
    { type: "branch", alias: "b", then: [step("t1"), step("t2")], else: [step("e")] },
    {
      type: "forEach",
      alias: "f",
      run: [{ type: "concurrent", alias: "c", steps: Array.from({ length: 12 }, (_, i) => step(`s${i}`)) }],
    },
    step("z"),
  ],
  onError: step("onError"),
});
const all = layoutOf(top, () => true);
const at = (key: string) => all.placed.find((placed) => placed.box.key === key)!;
const inside = (inner: Placed, outer: Placed) =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

test("what is in a box is drawn inside of it, and nothing overlaps but that", () => {
  for (const one of all.placed)
    for (const other of all.placed) {
      if (one === other) continue;
      if (other.box.key.startsWith(`${one.box.key}:`))
        expect(inside(other, one), `${other.box.key} in ${one.box.key}`).toBe(true);
      else if (!one.box.key.startsWith(`${other.box.key}:`)) {
        const apart =
          one.x + one.width <= other.x ||
          other.x + other.width <= one.x ||
          one.y + one.height <= other.y ||
          other.y + other.height <= one.y;
        expect(apart, `${one.box.key} and ${other.box.key}`).toBe(true);
      }
    }
});

test("a sequence goes down, centred, with an edge from each to the next", () => {
  expect(at("b").y).toBeGreaterThan(at("a").y + at("a").height);
  const middle = (placed: Placed) => placed.x + placed.width / 2;
  expect(middle(at("z"))).toBeCloseTo(middle(at("a")));
  expect(all.edges).toContainEqual({ from: "b:then:node0:t1", to: "b:then:node1:t2", dashed: false });
  expect(all.edges).toContainEqual({ from: "z", to: "onError", dashed: true });
});

test("the paths of a branch stand side by side, under their names", () => {
  expect(at("b:else:node0:e").x).toBeGreaterThan(at("b:then:node0:t1").x);
  expect(all.titles.map((title) => title.text)).toEqual(["then", "else"]);
});

test("many lanes go on in a second row", () => {
  const ys = new Set(
    all.placed.filter((placed) => placed.box.key.startsWith("f:iter*:node0:c:")).map((placed) => placed.y),
  );
  expect(ys.size).toBe(3);
});

test("on a narrow screen the lanes stand below each other", () => {
  const narrow = layoutOf(top, () => true, 1);
  expect(
    new Set(narrow.placed.filter((placed) => !placed.open).map((placed) => placed.x + placed.width / 2)).size,
  ).toBe(1);
  expect(narrow.width).toBeLessThan(400);
});

test("a closed box is a card without what is in it", () => {
  const closed = layoutOf(top, (box) => box.alias !== "f");
  expect(closed.placed.some((placed) => placed.box.key.startsWith("f:"))).toBe(false);
  expect(closed.placed.find((placed) => placed.box.key === "f")).toMatchObject({ open: false });
});

test("a large plan begins with its inner boxes closed", () => {
  const many = boxesOf({
    name: "m",
    steps: [{ type: "forEach", alias: "f", run: Array.from({ length: 90 }, (_, i) => step(`s${i}`)) }, step("z")],
  });
  expect(openAtFirst(many)(many[0] as Box)).toBe(false);
  expect(openAtFirst(top)(top[1] as Box)).toBe(true);
});

test("a plan of two thousand nodes is laid out within its budget, at the price of its nodes", () => {
  const wide = (n: number) =>
    boxesOf({
      name: "w",
      steps: Array.from({ length: n / 10 }, (_, i) => ({
        type: "concurrent" as const,
        alias: `c${i}`,
        steps: Array.from({ length: 9 }, (_, k) => step(`s${k}`)),
      })),
    });
  const took = (boxes: Box[]) => {
    // Of the processor: how busy the machine is with other things does not count.
    const times = Array.from({ length: 5 }, () => {
      const begun = process.cpuUsage();
      layoutOf(boxes, () => true);
      const { user, system } = process.cpuUsage(begun);
      return (user + system) / 1000;
    });
    return Math.min(...times);
  };
  const two = wide(2_000);
  expect(two.reduce((sum, box) => sum + box.size, 0)).toBe(2_000);
  expect(took(two)).toBeLessThan(50);
  expect(took(wide(20_000))).toBeLessThan(1_000); // ten times the nodes, about ten times the time
});

test("stages stand side by side, a state below what it depends on, and in a row by priority", () => {
  const stages = boxesOf({
    name: "m",
    steps: [
      {
        type: "stage",
        alias: "one",
        states: [
          { alias: "last", priority: 10, dependsOn: { x: { state: "low" } } },
          { alias: "low", priority: 50 },
          { alias: "high", priority: 200 },
          { alias: "next", priority: 150, onFailure: "high", dependsOn: { x: { state: "high" } } },
        ],
      },
      {
        type: "stage",
        alias: "two",
        states: [{ alias: "end", dependsOn: { x: { state: "high", stage: "one" } } }],
      },
    ],
  });
  const drawn = layoutOf(stages, () => true);
  const place = (key: string) => drawn.placed.find((placed) => placed.box.key === key)!;
  expect(place("two").x).toBeGreaterThan(place("one").x + place("one").width);
  expect(place("one:high").x).toBeLessThan(place("one:low").x);
  expect(place("one:high").y).toBe(place("one:low").y);
  expect(place("one:next").y).toBeGreaterThan(place("one:high").y);
  expect(place("one:last").y).toBe(place("one:next").y);
  expect(drawn.edges).toContainEqual({ from: "one:high", to: "one:next", dashed: false });
  expect(drawn.edges).toContainEqual({ from: "one:high", to: "two:end", dashed: false, sides: ["bottom", "left"] });
  expect(drawn.edges).toContainEqual({ from: "one:next", to: "one:high", dashed: true, sides: ["right", "right"] });
  // On a phone all in one column; arrows pass at the sides.
  const narrow = layoutOf(stages, () => true, 1);
  expect(new Set(narrow.placed.filter(({ box }) => box.state).map(({ x }) => x)).size).toBe(1);
  expect(narrow.edges).toContainEqual({ from: "one:high", to: "one:next", dashed: false, sides: ["left", "left"] });
});
