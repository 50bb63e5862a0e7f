/* violations.ts: the server's violations, by JSON pointer, as the form wants them: a tree of errors. */
import type { ErrorSchema } from "@rjsf/utils";
import { isContainer } from "../../api/json";
import type { Json, Violation } from "../../api/types";

/** "/items/0/na~1me" → ["items", "0", "na/me"] */
export function pointerParts(pointer: string): string[] {
  if (pointer === "" || pointer === "/") return [];
  return pointer
    .replace(/^\//, "")
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

type ErrorTree = { __errors?: string[] } & { [key: string]: ErrorTree | string[] | undefined };

export function errorTree(violations: readonly Violation[]): ErrorSchema {
  const root: ErrorTree = Object.create(null) as ErrorTree;
  for (const { path, message } of violations) {
    let at = root;
    for (const part of pointerParts(path)) at = (at[part] ??= Object.create(null) as ErrorTree) as ErrorTree;
    (at.__errors ??= []).push(message);
  }
  return root as ErrorSchema;
}

/** Those about values that no field of the form shows: they are listed above it. A value that is there,
 * or could be typed in, has a field; one that the schema knows nothing of has none. The whole has one where the
 * form is of `oneValue`. */
export function withoutField(
  violations: readonly Violation[],
  properties: ReadonlySet<string>,
  data: Json | undefined,
  oneValue: boolean,
): Violation[] {
  const shown = isContainer(data) ? new Set([...properties, ...Object.keys(data)]) : properties;
  return violations.filter((violation) => {
    const first = pointerParts(violation.path)[0];
    return first === undefined ? !oneValue : !shown.has(first);
  });
}
