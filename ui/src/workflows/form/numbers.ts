/* numbers.ts: numbers in the data of the form.
 *
 * The library tells what a value is by typeof, and merges and copies objects field by field: a LosslessNumber would
 * not come out as it went in. So in the form's data, and in what its schema has of data, it is a text: a mark that
 * nobody types, then its digits. A text that begins with the mark has it twice. */
import { isNumber } from "lossless-json";
import { isContainer, isLosslessNumber, LosslessNumber, numberOf } from "../../api/json";
import type { Json } from "../../api/types";

const MARK = "\u0000";

export function toForm(value: Json): Json {
  return mapLeaves(value, (leaf) => {
    if (isLosslessNumber(leaf)) return MARK + leaf.value;
    return typeof leaf === "string" && leaf.startsWith(MARK) ? MARK + leaf : leaf;
  });
}

export function fromForm(data: Json): Json {
  return mapLeaves(data, (leaf) => {
    if (typeof leaf !== "string" || !leaf.startsWith(MARK)) return leaf;
    const rest = leaf.slice(MARK.length);
    return isNumber(rest) ? new LosslessNumber(rest) : rest;
  });
}

/** As near as a double comes, for what must calculate. */
export function rounded(data: Json): Json {
  return mapLeaves(fromForm(data), (leaf) => (isLosslessNumber(leaf) ? Number(leaf.value) : leaf));
}

/** What is typed into a field for a number, as data of the form. What is no number stays a text, for the server to refuse. */
export function fromTyped(typed: string): Json | undefined {
  const text = typed.trim();
  if (text === "") return undefined;
  const [, sign, whole, fraction, exponent] = /^([+-]?)0*(\d*)(?:\.(\d*))?([eE][+-]?\d+)?$/.exec(text) ?? [];
  if (whole === undefined || !/^[+-]?\.?\d/.test(text)) return text;
  return toForm(
    numberOf(`${sign === "-" ? "-" : ""}${whole || "0"}${fraction ? `.${fraction}` : ""}${exponent ?? ""}`),
  );
}

/** Data of the form, as it is shown in a field for a number. */
export function toTyped(data: Json | undefined): string {
  if (data === undefined || data === null) return "";
  const value = fromForm(data);
  return isContainer(value) ? "" : String(value);
}

function mapLeaves(value: Json, map: (leaf: Json) => Json): Json {
  if (!isContainer(value)) return map(value);
  if (Array.isArray(value)) return value.map((item) => mapLeaves(item, map));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapLeaves(item, map)]));
}
