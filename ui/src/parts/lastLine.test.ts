import { expect, test } from "vitest";
import { lastLine } from "./lastLine";

test("the last line that is not empty", () => {
  expect(lastLine("one")).toBe("one");
  expect(lastLine('Traceback:\n  File "a.py"\nValueError: no such order\n\n  \n')).toBe("ValueError: no such order");
  expect(lastLine("a\r\nb\r\n")).toBe("b");
  expect(lastLine(" \n ")).toBe("");
});
