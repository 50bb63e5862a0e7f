/** offers.ts: workflows as a worker offers them to an engine. */
import { createHash } from "node:crypto";
import type { LoweredWorkflow } from "../define/lower.js";
import { isZod, parseInput, pointer } from "../define/schema.js";
import type { StepFunction, WorkflowDefinition } from "../types.js";
import type { Offer } from "./connection.js";

/** Workflows as a worker offers them: those with a Zod schema judge their inputs. */
export function offersOf(workflows: { definition: WorkflowDefinition; lowered: LoweredWorkflow }[]): Offer[] {
  return workflows.map(({ definition, lowered }) => {
    const schema = definition.inputSchema;
    const offer: Offer = { plan: lowered.plan, functions: lowered.functions };
    if (!isZod(schema)) return offer;
    offer.validate = async (input) => {
      const parsed = await parseInput(schema, input);
      if (parsed.error === undefined) return { input: parsed.input };
      return { violations: parsed.error.issues.map((issue) => ({ path: pointer(issue.path), message: issue.message })) };
    };
    return offer;
  });
}

/** A hash of the code that is offered: recorded with each attempt. */
export function hashOf(offers: Offer[]): string {
  const hash = createHash("sha256");
  for (const offer of offers) {
    hash.update(JSON.stringify(offer.plan));
    for (const [name, { fn }] of offer.functions) hash.update(name).update(Function.prototype.toString.call(fn as StepFunction));
  }
  return hash.digest("hex").slice(0, 16);
}
