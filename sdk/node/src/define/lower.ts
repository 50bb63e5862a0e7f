/**
 * lower.ts: a definition as the engine knows it: a plan document (src/plan/README.md) and the functions it names.
 *
 * Nested workflows stand in their place, with their own functions, so one document is all that the engine needs.
 */
import type { $ZodType } from "zod/v4/core";
import { WorkflowDefinitionError } from "../errors.js";
import type {
  BodyDefinition,
  Description,
  ErrorHandler,
  NodeDefinition,
  PredefinedStep,
  StepConfig,
  StepFunction,
  WorkflowDefinition,
} from "../types.js";
import { Names, partOf } from "./names.js";
import { isDefinition, isPredefined, isReference } from "./normalize.js";
import { jsonSchemaOf } from "./schema.js";

type Json = Record<string, unknown>;

/** A function that the engine may ask for by name. */
export interface OfferedFunction {
  fn: StepFunction | ErrorHandler;
  /** What its result has to be (`Results`). */
  result?: $ZodType;
}

export interface LoweredWorkflow {
  plan: Json;
  functions: Map<string, OfferedFunction>;
}

export function lowerWorkflow(definition: WorkflowDefinition): LoweredWorkflow {
  const lowering = new Lowering(definition.name);
  const plan = lowering.document(definition);
  if (lowering.faults.length > 0) throw new WorkflowDefinitionError(definition.name, lowering.faults);
  return { plan, functions: lowering.functions };
}

class Lowering {
  readonly functions = new Map<string, OfferedFunction>();
  readonly faults: { path: string; message: string }[] = [];
  private readonly chain: string[];
  /** The result schemas of the workflow that is gone through, and those of them that nobody has claimed yet. */
  private schemas: Record<string, $ZodType> = {};
  private unclaimed = new Set<string>();

  constructor(name: string) {
    this.chain = [name];
  }

  document(definition: WorkflowDefinition): Json {
    const names = new Names(definition.name);
    return {
      name: definition.name,
      ...(definition.description === undefined ? {} : { description: definition.description }),
      ...(definition.inputSchema === undefined ? {} : { input: jsonSchemaOf(definition.inputSchema) }),
      ...(definition.needs === undefined ? {} : { needs: definition.needs }),
      ...this.content(definition, names),
    };
  }

  /** The steps and the handler of a workflow. */
  private content(definition: WorkflowDefinition, names: Names): Json {
    const outer = [this.schemas, this.unclaimed] as const;
    this.schemas = definition.results ?? {};
    this.unclaimed = new Set(Object.keys(this.schemas));
    const steps = this.nodes(definition.steps, names);
    for (const alias of this.unclaimed)
      this.faults.push({ path: "results", message: `there is no step '${alias}' with a function` });
    [this.schemas, this.unclaimed] = outer;
    const handler = definition.onError;
    return {
      steps,
      ...(handler === undefined ? {} : { onError: this.handler(partOf(definition.name, "onError"), handler) }),
    };
  }

  private offer(name: string, fn: StepFunction | ErrorHandler, result?: $ZodType): string {
    const other = this.functions.get(name);
    if (other !== undefined && other.fn !== fn) this.faults.push({ path: "", message: `Duplicate actor name '${name}'` });
    this.functions.set(name, result === undefined ? { fn } : { fn, result });
    return name;
  }

  private call(name: string, fn: StepFunction): Json {
    return { fn: this.offer(name, fn) };
  }

  private handler(name: string, fn: ErrorHandler): Json {
    return { kind: "function", name: this.offer(name, fn) };
  }

  private nodes(nodes: NodeDefinition[], names: Names): Json[] {
    return nodes.map((node) => this.node(node, names));
  }

  private node(node: NodeDefinition, names: Names): Json {
    const { alias } = node;
    switch (node.type) {
      case undefined:
        return this.step(alias, node.run, node.config ?? {}, names.of(alias));
      case "forEach": {
        const inside = names.below("loop", alias);
        const items = node.items;
        return {
          type: "forEach",
          alias,
          ...this.shared(node, (part) => inside.of(part)),
          items:
            typeof items === "function" ? this.call(inside.of("iterator"), items) : this.value(items, inside.of("iterator")),
          run: this.body(node.run, inside.below("run")),
          ...given({ parallel: node.parallel, concurrency: node.concurrency, onFailure: node.onFailure, label: node.label }),
        };
      }
      case "loop": {
        const inside = names.below("loop", alias);
        const test = node.while === undefined ? "until" : "while";
        return {
          type: "loop",
          alias,
          ...this.shared(node, (part) => inside.of(part)),
          body: this.body(node.body, inside.below("run")),
          [test]: this.call(inside.of("condition"), (node.while ?? node.until)!),
          ...given({ maxIterations: node.maxIterations, keep: node.keep }),
        };
      }
      case "concurrent": {
        const inside = names.below("parallel", alias);
        return {
          type: "concurrent",
          alias,
          ...this.shared(node, (part) => inside.of(part)),
          steps: node.steps.map((child) =>
            "nodes" in child
              ? { alias: child.alias, nodes: this.nodes(child.nodes, inside.below("step", child.alias)) }
              : this.child(child, inside.below("step")),
          ),
          continueOn: node.continueOn,
          onFailure: node.onFailure,
          ...given({ join: node.join }),
        };
      }
      case "branch": {
        const inside = names.below("branch", alias);
        return {
          type: "branch",
          alias,
          ...this.shared(node, (part) => inside.of(part)),
          if: this.call(inside.of("condition"), node.if),
          then: this.nodes(node.then, inside.below("then")),
          ...(node.else === undefined ? {} : { else: this.nodes(node.else, inside.below("else")) }),
        };
      }
      case "workflow": {
        const inside = names.below("workflow", alias);
        return {
          type: "workflow",
          alias,
          ...this.shared(node, (part) => inside.of(part)),
          ...this.nested(node.workflow, alias, undefined),
          ...("input" in node ? { input: this.value(node.input, inside.of("input")) } : {}),
        };
      }
    }
  }

  /** A child of a concurrent block. The engine takes steps and workflows there as they are, anything else as a list. */
  private child(node: NodeDefinition, names: Names): Json {
    const lowered = this.node(node, names);
    return node.type === undefined || node.type === "workflow" ? lowered : { alias: node.alias, nodes: [lowered] };
  }

  private step(alias: string, run: StepFunction | PredefinedStep, config: StepConfig, name: string): Json {
    const { onError, when, description, actor, ...data } = config;
    const schema = Object.hasOwn(this.schemas, alias) ? this.schemas[alias] : undefined;
    if (schema !== undefined && !isPredefined(run)) this.unclaimed.delete(alias);
    const condition = this.shared({ when, description }, (part) => partOf(name, part));
    const rest = {
      ...data,
      ...(onError === undefined ? {} : { onError: this.handler(partOf(name, "onError"), onError) }),
    };
    if (!isPredefined(run)) return { type: "step", alias, ...condition, kind: "function", name: this.offer(name, run, schema), ...rest };
    const constants = Object.entries(run.options).filter(([, value]) => typeof value !== "function");
    const fn = parametersOf(run);
    return {
      type: "step",
      alias,
      ...condition,
      kind: run.kind,
      with: Object.fromEntries(constants.map(([key, value]) => [key, literal(value)])) as Json,
      ...(fn === undefined ? {} : { input: this.call(partOf(name, "input"), fn) }),
      ...rest,
    };
  }

  /** What every node may have: its condition and its description. */
  private shared(node: { when?: StepFunction | undefined; description?: Description | undefined }, name: (part: string) => string): Json {
    const { when, description } = node;
    return {
      ...(when === undefined ? {} : { when: this.call(name("when"), when) }),
      ...(description === undefined
        ? {}
        : { description: typeof description === "function" ? this.call(name("description"), description) : literal(description) }),
    };
  }

  /** A value as the engine reads it: a function by name; texts with `${` in them are no templates. */
  private value(value: unknown, name: string): unknown {
    if (typeof value === "function") return this.call(name, value as StepFunction);
    const looksLikeCall =
      typeof value === "object" && value !== null && Object.keys(value).length === 1 && "fn" in value;
    if (looksLikeCall) return this.call(name, sameFor(value, () => value));
    return literal(value);
  }

  private body(body: BodyDefinition, names: Names): unknown {
    if (Array.isArray(body)) return this.nodes(body, names);
    if (isDefinition(body) || isReference(body)) return { type: "workflow", ...this.nested(body, "", names) };
    const lowered = this.node(body as NodeDefinition, names);
    return lowered.type === "step" ? lowered : [lowered];
  }

  /** Another workflow in its place. In a body its nodes are those of the iteration, and are called as such (`names`). */
  private nested(workflow: unknown, path: string, names: Names | undefined): Json {
    const target = isReference(workflow) ? workflow.target : workflow;
    if (typeof target === "string" || !isDefinition(target))
      return { name: typeof target === "string" ? target : String((workflow as { target: unknown }).target) };
    if (this.chain.includes(target.name)) {
      this.faults.push({ path, message: `workflow '${target.name}' contains itself` });
      return { name: target.name };
    }
    this.chain.push(target.name);
    const content = this.content(target, names ?? new Names(target.name));
    this.chain.pop();
    return {
      name: target.name,
      ...(target.description === undefined ? {} : { workflowDescription: target.description }),
      ...(target.inputSchema === undefined ? {} : { inputSchema: jsonSchemaOf(target.inputSchema) }),
      ...(target.needs === undefined ? {} : { workflowNeeds: target.needs }),
      ...content,
    };
  }
}

/** One function for those fields of a predefined step that are functions. */
function parametersOf(step: PredefinedStep): StepFunction | undefined {
  const fields = Object.entries(step.options).filter((field): field is [string, StepFunction] => typeof field[1] === "function");
  if (fields.length === 0) return undefined;
  return sameFor(step, async (context: unknown) =>
    Object.fromEntries(await Promise.all(fields.map(async ([key, fn]) => [key, (await fn(context)) as unknown] as const))),
  );
}

const made = new WeakMap<object, StepFunction>();

/** The function that was made for this before, or now: a workflow may be lowered again, and must have the same functions then. */
function sameFor(owner: object, fn: StepFunction): StepFunction {
  const before = made.get(owner);
  if (before === undefined) made.set(owner, fn);
  return before ?? fn;
}

function given(values: Json): Json {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** JSON in which no text is a template. */
export function literal(value: unknown): unknown {
  const json: unknown = JSON.parse(JSON.stringify(value ?? null), (_key, part: unknown) =>
    typeof part === "string" ? part.replaceAll("${", () => "$${") : part,
  );
  return json;
}
