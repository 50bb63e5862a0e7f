import { expect, test } from "vitest";
import { boxesOf, byKey, wayTo } from "../plan";
import { logQueryOf, withIteration } from "./where";

const boxes = byKey(
  boxesOf({
    name: "w",
    steps: [
      {
        type: "forEach",
        alias: "tables",
        run: [{ type: "forEach", alias: "rows", run: [{ type: "step", alias: "insert" }] }],
      },
    ],
  }),
);
const OPEN = "tables:iter*:node0:rows:iter*:node0:insert";

test("what the server is asked for", () => {
  expect(logQueryOf(boxes, "")).toEqual({});
  expect(logQueryOf(boxes, "tables")).toEqual({ path: "tables" });
  expect(logQueryOf(boxes, OPEN)).toEqual({ path: "tables", step: "insert" });
  expect(logQueryOf(boxes, "tables:iter1:node0:rows:iter*:node0:insert")).toEqual({
    path: "tables:iter1:node0:rows",
    step: "insert",
  });
  expect(logQueryOf(boxes, "tables:iter1:node0:rows:iter3:node0:insert")).toEqual({
    path: "tables:iter1:node0:rows:iter3:node0:insert",
  });
});

test("an iteration is chosen, and left open again", () => {
  const one = withIteration(wayTo(boxes, OPEN), 0, 1);
  expect(one).toBe("tables:iter1:node0:rows:iter*:node0:insert");
  const both = withIteration(wayTo(boxes, one), 1, 3);
  expect(both).toBe("tables:iter1:node0:rows:iter3:node0:insert");
  expect(withIteration(wayTo(boxes, both), 0, undefined)).toBe(OPEN);
  expect(withIteration(wayTo(boxes, "tables"), 0, 4)).toBe("tables:iter4");
  expect(withIteration(wayTo(boxes, "tables:iter4"), 0, undefined)).toBe("tables");
});
