import { describe, expect, it } from "vitest";
import { formatDuration, formatRelative, parseSpan } from "./time";

describe("a duration", () => {
  it.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [1000, "1.0 s"],
    [9999, "9.9 s"],
    [42_300, "42 s"],
    [60_000, "1 min"],
    [200_000, "3 min 20 s"],
    [7_500_000, "2 h 5 min"],
    [3 * 86_400_000 + 3_600_000, "3 d 1 h"],
    [-5, "0 ms"],
  ])("of %d ms reads as %s", (ms, text) => expect(formatDuration(ms)).toBe(text));
});

describe("a moment", () => {
  it.each([
    [100_000, 100_900, "just now"],
    [100_000, 130_000, "30 s ago"],
    [130_000, 100_000, "in 30 s"],
    [0, 3 * 3_600_000, "3 h ago"],
  ])("at %d, seen at %d, is %s", (at, now, text) => expect(formatRelative(at, now)).toBe(text));
});

describe("a span in the address", () => {
  it("is a number and a unit", () => {
    expect(parseSpan("15m")).toBe(900_000);
    expect(parseSpan("7d")).toBe(604_800_000);
  });
  it("is nothing when it is something else", () => {
    for (const text of ["", "7", "d", "-1d", "1y", "99999d", "1d2"]) expect(parseSpan(text)).toBeUndefined();
  });
});
