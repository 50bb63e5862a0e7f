import { expect, test } from "vitest";
import { ownerRow, rowAt, rowsOf, type OpenNode } from "./rows";

const tree: Record<string, { total: number; open?: OpenNode[] }> = {
  "": { total: 3, open: [{ path: "each", index: 1 }] },
  each: {
    total: 20_000,
    open: [
      { path: "each:iter5", index: 5 },
      { path: "each:iter9000", index: 9000 },
    ],
  },
  "each:iter5": { total: 2 },
  "each:iter9000": { total: 2 },
};
const rows = rowsOf(
  (parent) => tree[parent]?.total ?? 0,
  (parent) => tree[parent]?.open ?? [],
);

test("what is open stands below its node", () => {
  expect(rows.count).toBe(3 + 20_000 + 2 + 2);
  expect(rowAt(rows, 0)).toEqual({ parent: "", index: 0, of: 3, depth: 0 });
  expect(rowAt(rows, 2)).toEqual({ parent: "each", index: 0, of: 20_000, depth: 1 });
  expect(rowAt(rows, 8)).toEqual({ parent: "each:iter5", index: 0, of: 2, depth: 2 });
  expect(rowAt(rows, 10)).toEqual({ parent: "each", index: 6, of: 20_000, depth: 1 });
  expect(rowAt(rows, rows.count - 1)).toEqual({ parent: "", index: 2, of: 3, depth: 0 });
  expect(rowAt(rows, rows.count)).toBeUndefined();
});

test("twenty thousand children are a few pieces", () => {
  expect(rows.pieces.length).toBeLessThan(10);
  expect(rows.parents).toEqual(["", "each", "each:iter5", "each:iter9000"]);
});

test("the owner of a list is the row above it", () => {
  expect(ownerRow(rows, "each")).toBe(1);
  expect(rowAt(rows, ownerRow(rows, "each:iter9000"))).toMatchObject({ parent: "each", index: 9000 });
  expect(ownerRow(rows, "")).toBe(-1);
});

test("what is open beyond the end of a list that shrank is not listed", () => {
  const few = rowsOf(
    (parent) => (parent === "" ? 1 : 5),
    (parent) => (parent === "" ? [{ path: "x", index: 3 }] : []),
  );
  expect(few.count).toBe(1);
});
