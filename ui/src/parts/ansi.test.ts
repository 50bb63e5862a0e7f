import { describe, expect, test } from "vitest";
import { ansiPieces, ansiText } from "./ansi";

const ESC = "\u001b";

describe("colours of terminals", () => {
  test("plain text is one piece", () => {
    expect(ansiPieces("hello")).toEqual([{ text: "hello", looks: [] }]);
  });
  test("colours begin and end", () => {
    expect(ansiPieces(`a ${ESC}[1;31mbad${ESC}[0m b`)).toEqual([
      { text: "a ", looks: [] },
      { text: "bad", looks: ["red", "bold"] },
      { text: " b", looks: [] },
    ]);
    expect(ansiPieces(`${ESC}[92mok${ESC}[39m.`)).toEqual([
      { text: "ok", looks: ["bright-green"] },
      { text: ".", looks: [] },
    ]);
  });
  test("colours of 256 and of red, green and blue do not become something else", () => {
    expect(ansiPieces(`${ESC}[38;5;31mx`)).toEqual([{ text: "x", looks: [] }]);
    expect(ansiPieces(`${ESC}[38;2;31;4;1mx`)).toEqual([{ text: "x", looks: [] }]);
  });
  test("other escapes are left out, whole or cut short", () => {
    expect(ansiText(`${ESC}[2K${ESC}]0;title\u0007a${ESC}[10;2Hb`)).toBe("ab");
    expect(ansiText(`a${ESC}[`)).toBe(`a${ESC}[`);
  });
});
