import { readJson } from "../api/json";
import type { JsonText } from "../api/client";
import type { Json } from "../api/types";

/** What somebody typed, as JSON, and as it was typed; nothing typed is no value. */
export function parseJson(
  typed: string,
): { value: Json; text: JsonText } | { value: undefined; text: undefined } | { error: string } {
  const text = typed.trim();
  if (text === "") return { value: undefined, text: undefined };
  try {
    return { value: readJson(text), text };
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
