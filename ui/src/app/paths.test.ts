import { describe, expect, it } from "vitest";
import { nameIn, runIdIn, runPath } from "./paths";

describe("the address of a run", () => {
  it("leads back to its id, whatever a browser makes of it", () => {
    for (const id of ["a", "2026.11:x-1_y", ".", "..", "...", ".a", "a:b"]) {
      const [, runs, part, tab] = new URL(runPath(id, "/logs?step=a"), "http://127.0.0.1/").pathname.split("/");
      expect([runs, runIdIn(part!), tab]).toEqual(["runs", id, "logs"]);
    }
  });
  it("may be none", () => {
    expect(runIdIn("%ff")).toBeNull();
    expect(nameIn("%E0%A4%A")).toBeNull();
    expect(nameIn("a%20b")).toBe("a b");
  });
});
