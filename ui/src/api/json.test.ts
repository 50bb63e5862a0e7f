import { describe, expect, it } from "vitest";
import { isContainer, LosslessNumber, numberOf, readJson, writeJson } from "./json";

describe("JSON", () => {
  it("keeps the digits of every number", () => {
    for (const number of [
      "12345678901234567890123",
      "-12345678901234567890",
      "1e400",
      "1E+2",
      "1.10",
      "1.0",
      "-0",
      "0.0000001",
      "0.1234567890123456789",
    ])
      for (const text of [number, `[${number}]`, `[1, ${number}]`, `{"n":${number}}`, `{"n" :\n${number}\n}`])
        expect(writeJson(readJson(text)), text).toBe(text.replace(/\s/g, ""));
  });
  it("has plain numbers where they say the same", () => {
    expect(readJson('{"a":[0,-1,1.5,1789000000000],"b":1.10}')).toEqual({
      a: [0, -1, 1.5, 1789000000000],
      b: new LosslessNumber("1.10"),
    });
    expect(numberOf("9007199254740991")).toBe(9007199254740991);
    expect(numberOf("9007199254740993")).toEqual(new LosslessNumber("9007199254740993"));
  });
  it("leaves numbers in strings alone", () => {
    expect(readJson('["at 10:00, 1.10", "12345678901234567890"]')).toEqual(["at 10:00, 1.10", "12345678901234567890"]);
  });
  it("reads what JSON.parse reads, and refuses what it refuses", () => {
    const odd = '{"__proto__":{"a":1.0},"b":1,"b":2.0,"c":"\\ud83d\\ude00\\/"}';
    const value = readJson(odd) as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(["__proto__", "b", "c"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect([value["b"], value["c"]]).toEqual([new LosslessNumber("2.0"), "😀/"]);
    for (const bad of ["", "{ oops", "01", ".5", "1.", "[1.10,]", "1.10 2", "NaN"])
      expect(() => readJson(bad), bad).toThrow(SyntaxError);
  });
  it("writes what JSON.stringify writes", () => {
    const value = { text: 'a "b"\n\u0000', list: [1, null, true, [], {}], deep: { a: { b: [{ c: -1.5 }] } } };
    expect(writeJson(value)).toBe(JSON.stringify(value));
    expect(writeJson(value, 2)).toBe(JSON.stringify(value, null, 2));
  });
  it("does not take a number for an object", () => {
    expect([[], {}, null, 1, "", new LosslessNumber("1.0")].map(isContainer)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
