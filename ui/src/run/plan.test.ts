import { describe, expect, test } from "vitest";
import type { Plan } from "../api/types";
import { boxAt, boxesOf, byKey, onlyWaits, wayTo } from "./plan";

const plan: Plan = {
  name: "kinds",
  steps: [
    { type: "step", alias: "iter3", kind: "value" },
    {
      type: "concurrent",
      alias: "c",
      steps: [
        { type: "step", alias: "a", kind: "value" },
        { type: "workflow", alias: "b", name: "payment", steps: [{ type: "step", alias: "charge", kind: "command" }] },
        {
          alias: "d",
          nodes: [{ type: "forEach", alias: "e", run: [{ type: "step", alias: "x", kind: "delay" }] }],
        } as never,
      ],
    },
    {
      type: "forEach",
      alias: "fw",
      run: {
        type: "workflow",
        name: "payment",
        steps: [{ type: "loop", alias: "l", body: [{ type: "step", alias: "s", kind: "signal" }] }],
      },
    },
    { type: "branch", alias: "br", then: [{ type: "step", alias: "t", kind: "value" }] },
  ],
  onError: { type: "step", kind: "command" },
};
const top = boxesOf(plan);
const boxes = byKey(top);

describe("a plan", () => {
  test("has a box for every node, under the path that the run will use", () => {
    expect([...boxes.keys()]).toEqual([
      "iter3",
      "c",
      "c:a",
      "c:b",
      "c:b:node0:charge",
      "c:d",
      "c:d:node0:e",
      "c:d:node0:e:iter*:node0:x",
      "fw",
      "fw:iter*:node0:l",
      "fw:iter*:node0:l:iter*:node0:s",
      "br",
      "br:then:node0:t",
      "onError",
    ]);
  });
  test("counts what is in a box", () => {
    expect(boxes.get("c")?.size).toBe(7);
  });
  test("lists the lanes that there are", () => {
    expect(boxes.get("br")?.lanes.map((lane) => lane.title)).toEqual(["then"]);
    expect(boxes.get("c")?.lanes).toHaveLength(3);
  });
});

describe("a path", () => {
  test("leads to its box, through iterations", () => {
    expect(boxAt(boxes, "fw:iter12:node0:l:iter0:node0:s")?.alias).toBe("s");
    expect(boxAt(boxes, "c:d:node0:e:iter7")?.alias).toBe("e");
  });
  test("may have an alias that looks like an iteration", () => {
    expect(boxAt(boxes, "iter3")?.key).toBe("iter3");
  });
  test("has a way, with the iterations it goes through", () => {
    const way = wayTo(boxes, "fw:iter12:node0:l:iter0:node0:s");
    expect(way.map(({ box, iteration }) => [box.alias, iteration])).toEqual([
      ["fw", 12],
      ["l", 0],
      ["s", undefined],
    ]);
    expect(way.map(({ path }) => path)).toEqual([
      "fw:iter12",
      "fw:iter12:node0:l:iter0",
      "fw:iter12:node0:l:iter0:node0:s",
    ]);
    expect(wayTo(boxes, "iter3").map(({ box }) => box.key)).toEqual(["iter3"]);
    expect(wayTo(boxes, "c:d:node0:e").map(({ box }) => box.alias)).toEqual(["c", "d", "e"]);
    expect(wayTo(boxes, "nowhere")).toEqual([]);
  });
  test("is the one of what it is in, and its own", () => {
    expect(boxes.get("fw:iter*:node0:l:iter*:node0:s")?.own).toBe("node0:s");
    expect(boxes.get("br:then:node0:t")?.own).toBe("then:node0:t");
    expect(boxes.get("c:d")?.own).toBe("d");
  });
});

test("delays and signals only wait", () => {
  expect(onlyWaits(boxAt(boxes, "c:d:node0:e:iter0:node0:x"))).toBe(true);
  expect(onlyWaits(boxAt(boxes, "fw:iter0:node0:l:iter0:node0:s"))).toBe(true);
  expect(onlyWaits(boxAt(boxes, "c:a"))).toBe(false);
});
