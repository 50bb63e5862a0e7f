import { describe, expect, it } from "vitest";
import { readJson, writeJson } from "../../api/json";
import { fromForm, fromTyped, rounded, toForm, toTyped } from "./numbers";

describe("the form's data", () => {
  it("gives back every value as it was", () => {
    for (const text of [
      "12345678901234567890",
      '{"a":[1.10,1e400,-0,2,null,true,"1.10"],"__proto__":{"b":1.0}}',
      '"\\u00001.10"',
      '["\\u0000","\\u0000\\u0000x",""]',
    ])
      expect(writeJson(fromForm(toForm(readJson(text))))).toBe(text);
  });
  it("has no objects but those of the value, which the library may copy", () => {
    expect(structuredClone(toForm(readJson('{"n":[1.10]}')))).toEqual(toForm(readJson('{"n":[1.10]}')));
    expect(toForm(readJson("[1.10,1]"))).toEqual([expect.stringContaining("1.10"), 1]);
  });
  it("can be rounded for a validator", () => {
    expect(rounded(toForm(readJson('[12345678901234567890,1.10,"1.10",1e400]')))).toEqual([
      12345678901234567000,
      1.1,
      "1.10",
      Infinity,
    ]);
  });
});

describe("a number that is typed", () => {
  const sent = (typed: string) => writeJson(fromForm(fromTyped(typed)!));
  it("is sent as it is typed", () => {
    for (const typed of ["0", "-1", "36", "1.5", "1.10", "12345678901234567890", "1e400", "-0.0000001", "0"])
      expect(sent(typed)).toBe(typed);
  });
  it("may be written as people do", () => {
    expect(["+5", "007", ".5", "-.5", "5.", " 7 ", "00"].map(sent)).toEqual(["5", "7", "0.5", "-0.5", "5", "7", "0"]);
  });
  it("is left for the server to refuse when it is none", () => {
    expect(["", "  "].map(fromTyped)).toEqual([undefined, undefined]);
    expect(["abc", "-", ".", "e5", "1e", "0x10", "1,5", "Infinity"].map(sent)).toEqual([
      '"abc"',
      '"-"',
      '"."',
      '"e5"',
      '"1e"',
      '"0x10"',
      '"1,5"',
      '"Infinity"',
    ]);
  });
  it("is shown as it is", () => {
    expect([readJson("1.10"), 0, "abc", null].map((value) => toTyped(toForm(value)))).toEqual(["1.10", "0", "abc", ""]);
    expect(toTyped(undefined)).toBe("");
  });
});
