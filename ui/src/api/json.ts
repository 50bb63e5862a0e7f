/* json.ts: JSON whose numbers keep their digits.
 *
 * A run's values are its owner's to the last digit, and a double is not: 12345678901234567890, 1e400, 1.10.
 * A number that a double gives back as it was written is a number here; any other is a LosslessNumber, which
 * holds its text. What is read or written anywhere in the page goes through these functions, not JSON's own. */
import { isLosslessNumber, LosslessNumber, parse, stringify } from "lossless-json";
import type { Json, JsonObject } from "./types";

export { isLosslessNumber, LosslessNumber };

/** Finds every number, and what looks like one inside a string: in JSON a number stands at the beginning
 * or behind one of these. */
const NUMBERS = /(?<![^\s[:,])-?\d[\d.eE+-]*/g;

/** Throws a SyntaxError. Of equal keys the last one counts, as with JSON.parse. */
export function readJson(text: string): Json {
  const value = JSON.parse(text) as Json; // many times faster, and mostly enough
  for (const [number] of text.matchAll(NUMBERS))
    if (!isExact(number))
      return parse(text, null, { parseNumber: numberOf, onDuplicateKey: ({ newValue }) => newValue }) as Json;
  return value;
}

export function writeJson(value: Json, indent = 0): string {
  return stringify(value, null, indent) as string; // which is undefined only for what is no JSON
}

/** `text` is a number as JSON writes it. */
export function numberOf(text: string): number | LosslessNumber {
  return isExact(text) ? Number(text) : new LosslessNumber(text);
}

const isExact = (text: string) => String(Number(text)) === text;

/** An object or a list. */
export function isContainer(value: Json | undefined): value is Json[] | JsonObject {
  return typeof value === "object" && value !== null && !isLosslessNumber(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return isContainer(value) && !Array.isArray(value);
}
