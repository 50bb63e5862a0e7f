/** results.ts: `Results`, for those who want typed results in files. */
import type { $ZodType, output } from "zod/v4/core";
import type { StepEntry } from "../types.js";
import { brand } from "./brand.js";

type Schemas = Record<string, $ZodType>;

export interface ResultsOf<Types, S> {
  /** A type, for signatures: `({ steps }: { steps: typeof results.Steps })`. It has no value. */
  readonly Steps: { [Alias in keyof Types]: StepEntry<Types[Alias]> };
  /** The Zod schemas, by alias. A file that exports them as `results` has its results checked. */
  readonly schemas: S;
}

/** With Zod schemas: types, and results are checked when their step ends. With a type argument alone: types. */
export function Results<S extends Schemas>(schemas: S): ResultsOf<{ [K in keyof S]: output<S[K]> }, S>;
export function Results<Types extends object>(): ResultsOf<Types, undefined>;
export function Results(schemas?: Schemas): ResultsOf<any, any> {
  for (const [alias, schema] of Object.entries(schemas ?? {}))
    if (typeof schema !== "object" || schema === null || !("_zod" in schema))
      throw new TypeError(`Results: '${alias}' is no schema of Zod 4`);
  return brand("results", { Steps: {}, schemas });
}
