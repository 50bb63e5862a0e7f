import { describe, expect, it } from "vitest";
import { queryOf, readFilter, writeFilter } from "./filters";

describe("the filter in the address", () => {
  it("survives being written and read", () => {
    const filter = { status: "failed" as const, workflow: "order & co", q: "ada ü", since: "7d" };
    expect(readFilter(new URLSearchParams(writeFilter(filter).toString()))).toEqual(filter);
  });
  it("ignores what means nothing", () => {
    expect(readFilter(new URLSearchParams("status=lost&since=soon&x=1"))).toEqual({ status: "", workflow: "", q: "", since: "" });
  });
  it("asks the server for what is set, and nothing else", () => {
    expect(queryOf({ status: "", workflow: "", q: "  ", since: "" }, 0)).toEqual({});
    expect(queryOf({ status: "running", workflow: "", q: " a ", since: "1h" }, 3_600_000 + 61_000)).toEqual({ status: "running", q: "a", since: 60_000 });
  });
});
