import { describe, expect, it } from "vitest";
import { errorTree, pointerParts, withoutField } from "./violations";

describe("violations", () => {
  it("find their fields by JSON pointer", () => {
    expect(
      errorTree([
        { path: "/items/0/price", message: "must be a number" },
        { path: "/items/0/price", message: "is too low" },
        { path: "/items", message: "is too short" },
        { path: "", message: "is odd" },
      ]),
    ).toEqual({
      __errors: ["is odd"],
      items: { __errors: ["is too short"], 0: { price: { __errors: ["must be a number", "is too low"] } } },
    });
  });
  it("unescape what a pointer escapes", () => {
    expect(pointerParts("/a~1b/~0c/~01")).toEqual(["a/b", "~c", "~1"]);
  });
  it("bear names that every object has", () => {
    const tree = errorTree([{ path: "/constructor/__proto__", message: "no" }]) as Record<
      string,
      Record<string, { __errors: string[] }>
    >;
    expect(tree["constructor"]!["__proto__"]!.__errors).toEqual(["no"]);
    expect(({} as { __errors?: unknown }).__errors).toBeUndefined();
  });
  it("without a field are kept apart", () => {
    const all = [
      { path: "", message: "a" },
      { path: "/name", message: "b" },
      { path: "/other", message: "c" },
      { path: "/typed", message: "d" },
    ];
    expect(withoutField(all, new Set(["name"]), { typed: 1 }, false).map((v) => v.message)).toEqual(["a", "c"]);
  });
  it("of the one value that a form is of are at its field", () => {
    expect(withoutField([{ path: "", message: "a" }], new Set(), "typed", true)).toEqual([]);
    expect(
      withoutField(
        [
          { path: "", message: "a" },
          { path: "/0", message: "b" },
          { path: "/7", message: "c" },
        ],
        new Set(),
        ["typed"],
        true,
      ).map((v) => v.message),
    ).toEqual(["c"]);
  });
});
