/** schema.ts: input schemas: Zod judges, JSON Schema is what others see. */
import { z } from "zod";
import { safeParseAsync, type $ZodError, type $ZodType } from "zod/v4/core";
import type { InputSchema } from "../types.js";

export function isZod(schema: unknown): schema is $ZodType {
  return typeof schema === "object" && schema !== null && "_zod" in schema;
}

/**
 * The JSON Schema (draft 2020-12) of what may be given as input: for forms, other languages, and the engine when no process
 * with the Zod schema is connected. What JSON Schema cannot say is left open there; Zod says it.
 */
export function jsonSchemaOf(schema: InputSchema): Record<string, unknown> {
  if (!isZod(schema)) return schema;
  const json: unknown = z.toJSONSchema(schema as z.ZodType, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // What is coerced may come as anything: the text "5" for a number.
      if ((zodSchema as { _zod: { def: { coerce?: boolean } } })._zod.def.coerce !== true) return;
      for (const key of Object.keys(jsonSchema)) if (!KEPT.includes(key)) Reflect.deleteProperty(jsonSchema, key);
    },
  });
  return JSON.parse(JSON.stringify(json)) as Record<string, unknown>; // without what Zod hides in it
}
const KEPT = ["title", "description", "default", "examples"];

/** The input as Zod gives it back (defaults, coercions), or what Zod says against it. */
export async function parseInput(
  schema: $ZodType,
  input: unknown,
): Promise<{ input: unknown; error?: undefined } | { error: $ZodError }> {
  const parsed = await safeParseAsync(schema, input);
  if (parsed.success) return { input: parsed.data };
  // A ZodError as users know it, not the bare one of the core.
  return { error: new z.ZodRealError(parsed.error.issues) as unknown as $ZodError };
}

/** A path in a value as a JSON pointer. */
export function pointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
