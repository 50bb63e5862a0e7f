import { describe, expect, it } from "vitest";
import { momentOf, queryOf, readFilter, writeFilter } from "./filters";

const NONE = readFilter(new URLSearchParams());

describe("the filter in the address", () => {
  it("survives being written and read", () => {
    const filter = {
      status: "failed" as const,
      workflow: "order & co",
      q: "ada ü",
      since: "7d",
      from: "",
      until: "2026-11-17T09:30",
      waiting: "somebody" as const,
      view: "mine",
    };
    expect(readFilter(new URLSearchParams(writeFilter(filter).toString()))).toEqual(filter);
  });
  it("ignores what means nothing", () => {
    expect(readFilter(new URLSearchParams("status=lost&since=soon&from=noon&until=2026-99-99T00:00&x=1"))).toEqual({
      status: "",
      workflow: "",
      q: "",
      since: "",
      from: "",
      until: "",
      waiting: "",
      view: "",
    });
  });
  it("asks the server for what is set, and nothing else", () => {
    expect(queryOf({ ...NONE, q: "  " }, 0)).toEqual({});
    expect(queryOf({ ...NONE, status: "running", q: " a ", since: "1h" }, 3_600_000 + 61_000)).toEqual({
      status: "running",
      q: "a",
      since: 60_000,
    });
  });
  it("knows moments of the reader's clock", () => {
    const at = new Date(2026, 10, 17, 9, 30).getTime();
    expect(momentOf(at)).toBe("2026-11-17T09:30");
    expect(queryOf({ ...NONE, from: momentOf(at), until: momentOf(at + 60_000) }, 0)).toEqual({
      since: at,
      until: at + 60_000,
    });
  });
});
