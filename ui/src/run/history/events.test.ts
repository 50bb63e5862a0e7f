import { expect, test } from "vitest";
import type { FeedEvent } from "../../api/types";
import { sayingOfEvent } from "./events";

const event = (seq: number, index: number, more: Partial<FeedEvent> = {}): FeedEvent => ({
  seq,
  index,
  kind: "step.failed",
  runId: "r",
  workflow: "w",
  at: 0,
  ...more,
});

test("an event in words", () => {
  expect(sayingOfEvent(event(1, 0, { attempt: 2, error: { message: "a\nb" } }))).toBe("attempt 2 · b");
  expect(sayingOfEvent(event(1, 0, { attempt: 1, result: { a: 1 }, by: "ada" }))).toBe('by ada · result {"a":1}');
});
