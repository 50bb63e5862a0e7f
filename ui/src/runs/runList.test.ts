import { describe, expect, it } from "vitest";
import type { FeedEvent, RunPageOf, RunSummary } from "../api/types";
import { withEvents, withHead, withNext, type RunRows } from "./runList";

const run = (runId: string, status: RunSummary["status"] = "running"): RunSummary => ({
  runId,
  workflow: "w",
  version: "v",
  status,
  createdAt: 1,
  startedAt: 10,
});
const list = (ids: string, cursor: string | null = "more"): RunRows => ({
  rows: [...ids].map((id) => run(id)),
  cursor,
});
const page = (ids: string, nextCursor: string | null = "next"): RunPageOf => ({
  runs: [...ids].map((id) => run(id)),
  nextCursor,
});
const ids = (rows: RunRows) => rows.rows.map((row) => row.runId).join("");
const event = (kind: string, runId: string, more: Partial<FeedEvent> = {}): FeedEvent => ({
  seq: 1,
  index: 0,
  kind,
  runId,
  workflow: "w",
  at: 50,
  ...more,
});

describe("a first page that is read again", () => {
  it("puts new runs in front and keeps the pages behind it", () => {
    const next = withHead(list("cdefg"), page("abcd"));
    expect(ids(next)).toBe("abcdefg");
    expect(next.cursor).toBe("more");
  });
  it("drops runs that no longer match", () => {
    expect(ids(withHead(list("abcdef"), page("acd")))).toBe("acdef");
  });
  it("replaces everything when it does not join on, rather than leave a gap", () => {
    const next = withHead(list("xyz"), page("abcd"));
    expect(ids(next)).toBe("abcd");
    expect(next.cursor).toBe("next");
  });
  it("is the whole list when nothing follows it", () => {
    const next = withHead(list("bcdef"), page("ab", null));
    expect(ids(next)).toBe("ab");
    expect(next.cursor).toBeNull();
  });
});

describe("a next page", () => {
  it("goes behind, without what is there already", () => {
    const next = withNext(list("abc"), page("cde", null));
    expect(ids(next)).toBe("abcde");
    expect(next.cursor).toBeNull();
  });
});

describe("events", () => {
  it("change the runs they are about", () => {
    const { list: next, news } = withEvents(list("abc"), [event("run.failed", "b", { error: { message: "no" } })]);
    expect(next.rows[1]).toMatchObject({ status: "failed", completedAt: 50, duration: 40, error: { message: "no" } });
    expect(next.rows[0]!.status).toBe("running");
    expect(news).toBe(false);
  });
  it("say why a run is suspended, as long as it is", () => {
    const { list: suspended } = withEvents(list("a"), [
      event("run.suspended", "a", { reason: { message: "no such function" } }),
    ]);
    expect(suspended.rows[0]).toMatchObject({ status: "suspended", suspension: { message: "no such function" } });
    const { list: resumed } = withEvents(suspended, [event("run.resumed", "a")]);
    expect(resumed.rows[0]).toMatchObject({ status: "running", suspension: undefined });
  });
  it("count by the last of them", () => {
    const { list: next } = withEvents(list("a"), [
      event("run.suspended", "a"),
      event("run.resumed", "a"),
      event("run.completed", "a"),
    ]);
    expect(next.rows[0]!.status).toBe("completed");
  });
  it("about unknown runs are news and change nothing", () => {
    const before = list("a");
    for (const each of [event("run.started", "z"), event("run.completed", "z")]) {
      const { list: next, news } = withEvents(before, [each]);
      expect(next).toBe(before);
      expect(news).toBe(true);
    }
  });
});
