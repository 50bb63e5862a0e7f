/** definition.ts: the definition of a workflow, made from its parts; every mistake in them is told at once. */
import type { $ZodType } from "zod/v4/core";
import { WorkflowDefinitionError } from "../errors.js";
import type { ErrorHandler, InputSchema, NodeDefinition, StepEntryLike, WorkflowDefinition } from "../types.js";
import { brand } from "./brand.js";
import { isBuilder, isDefinition, nameFault, Normalizer, type Violation } from "./normalize.js";

export interface WorkflowOptions {
  steps: StepEntryLike[];
  input?: InputSchema;
  /** The same as `input`: its name in a definition. */
  inputSchema?: InputSchema;
  description?: string;
  onError?: ErrorHandler;
  results?: Record<string, $ZodType> | { schemas: Record<string, $ZodType> | undefined };
  needs?: string[];
  /** Where it was written. */
  source?: string;
}

const OPTIONS = ["steps", "input", "inputSchema", "description", "onError", "results", "needs", "source"];

export function define<Input>(name: string, options: WorkflowOptions): WorkflowDefinition<Input> {
  const violations: Violation[] = [];
  const refuse = (message: string): void => void violations.push({ path: "", message });
  const fault = nameFault(name);
  if (fault !== undefined) refuse(`invalid name '${String(name)}': ${fault}`);
  for (const key of Object.keys(options)) if (!OPTIONS.includes(key)) refuse(`unknown key '${key}'`);
  if (options.steps.length === 0) refuse("it has no steps");
  if (options.onError !== undefined && typeof options.onError !== "function") refuse("onError must be a function");
  if (options.description !== undefined && typeof options.description !== "string") refuse("description must be a text");
  const input = options.input ?? options.inputSchema;
  if (options.input !== undefined && options.inputSchema !== undefined) refuse("has both 'input' and 'inputSchema': one is enough");
  if (input !== undefined && (typeof input !== "object" || input === null)) refuse("input must be a schema of Zod, or a JSON Schema");
  else if (input !== undefined && !("_zod" in input) && "_def" in input)
    refuse("input is a schema of Zod 3: this package needs Zod 4");
  const normalizer = new Normalizer();
  const nodes: NodeDefinition[] = options.steps.map((entry) => normalizer.add(entry));
  violations.push(...normalizer.violations);
  if (violations.length > 0) throw new WorkflowDefinitionError(String(name), violations);
  const results = options.results === undefined ? undefined : schemasOf(options.results);
  return brand("definition", {
    name,
    steps: nodes,
    ...(input === undefined ? {} : { inputSchema: input }),
    ...(options.description === undefined ? {} : { description: options.description }),
    ...(options.onError === undefined ? {} : { onError: options.onError }),
    ...(results === undefined ? {} : { results }),
    ...(options.needs === undefined ? {} : { needs: options.needs }),
    ...(options.source === undefined ? {} : { source: options.source }),
  });
}

export function schemasOf(results: NonNullable<WorkflowOptions["results"]>): Record<string, $ZodType> | undefined {
  const isHelper = "schemas" in results && !("_zod" in Object(results.schemas));
  return (isHelper ? results.schemas : results) as Record<string, $ZodType> | undefined;
}


/** What a workflow can be given as: a builder, its definition, or a definition that was written by hand. */
export type Workflow = WorkflowDefinition | { build(): WorkflowDefinition };

/** Is it a workflow, and not options of something? */
export function isWorkflow(value: unknown): value is Workflow {
  if (isBuilder(value) || isDefinition(value)) return true;
  const plain = value as { name?: unknown; steps?: unknown } | null | undefined;
  return typeof plain === "object" && typeof plain?.name === "string" && Array.isArray(plain.steps);
}

/** The definition of a workflow. One that was written by hand is checked. */
export function definitionOf(workflow: unknown, caller: string): WorkflowDefinition {
  if (!isWorkflow(workflow)) throw new TypeError(`${caller}: a workflow is needed: createWorkflow() or defineWorkflow() make one`);
  if (isBuilder(workflow)) return workflow.build();
  return isDefinition(workflow) ? workflow : checked(workflow);
}

/** The same definition, checked as if it were new: somebody may have changed it since it was built. */
export function checked(definition: WorkflowDefinition): WorkflowDefinition {
  const { name, ...parts } = definition;
  return define(name, parts);
}
