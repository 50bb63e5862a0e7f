/**
 * brand.ts: how our own objects are told from users' objects.
 *
 * A program may have two copies of this package (its own, and that of the host that loads its files), so `instanceof`
 * cannot be trusted. Symbols of the global registry are the same in both.
 */
const PREDEFINED = Symbol.for("rival.predefined");
const REFERENCE = Symbol.for("rival.reference");
const DEFINITION = Symbol.for("rival.definition");
const RESULTS = Symbol.for("rival.results");

type Brand = "predefined" | "reference" | "definition" | "results";
const SYMBOLS: Record<Brand, symbol> = {
  predefined: PREDEFINED,
  reference: REFERENCE,
  definition: DEFINITION,
  results: RESULTS,
};

/** Mark an object as one of ours. The mark is not enumerable: it shows in no JSON and in no comparison. */
export function brand<T extends object>(kind: Brand, value: T): T {
  Object.defineProperty(value, SYMBOLS[kind], { value: true });
  return value;
}

export function isBranded(kind: Brand, value: unknown): boolean {
  return (
    (typeof value === "object" || typeof value === "function") && value !== null && Reflect.has(value, SYMBOLS[kind])
  );
}
