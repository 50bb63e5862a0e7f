import type { Json } from "../api/types";

/** What somebody typed, as JSON; nothing typed is no value. */
export function parseJson(text: string): { value: Json | undefined } | { error: string } {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
