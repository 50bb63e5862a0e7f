/** builder.ts: `createWorkflow` and `defineWorkflow`. */
import type { $ZodType } from "zod/v4/core";
import { defaultRegistry } from "../registry.js";
import type {
  BodyLike,
  BranchOptions,
  ConcurrentOptions,
  Description,
  ErrorHandler,
  ForEachOptions,
  InputOf,
  InputSchema,
  IterationContext,
  LoopOptions,
  NestedOptions,
  PredefinedStep,
  StepConfig,
  StepContext,
  StepEntry,
  StepEntryLike,
  StepFunction,
  StepOptions,
  WorkflowDefinition,
  WorkflowReference,
} from "../types.js";
import { define, schemasOf, type WorkflowOptions } from "./definition.js";
import type { HttpResult } from "./steps.js";

type With<Steps, Alias extends string, Result> = Steps & { [A in Alias]: StepEntry<Awaited<Result>> };
type Named = { alias: string } | { name: string };
type AliasOf<O> = O extends { alias: infer A extends string } ? A : O extends { name: infer A extends string } ? A : never;

/**
 * A workflow in the making. Each call adds a node behind those before; what is wrong with it is told by `build()` or
 * `register()`, all at once. A builder can be nested as it is: it is built then.
 */
export class WorkflowBuilder<Input = any, Steps = object> {
  private readonly entries: unknown[] = [];
  private schema: InputSchema | undefined;
  private text: string | undefined;
  private handler: ErrorHandler | undefined;
  private schemas: Record<string, $ZodType> | undefined;
  private reads: string[] | undefined;
  private built: WorkflowDefinition<Input> | undefined;

  constructor(readonly name: string) {}

  private changed(): void {
    if (this.built !== undefined)
      throw new Error(`workflow '${this.name}' has been built: nothing can be added to it any more`);
  }

  private push(entry: unknown): this {
    this.changed();
    this.entries.push(entry);
    return this;
  }

  /** The schema of its input: Zod, or JSON Schema. */
  input<S extends InputSchema>(schema: S): WorkflowBuilder<InputOf<S>, Steps> {
    this.changed();
    this.schema = schema;
    return this as unknown as WorkflowBuilder<InputOf<S>, Steps>;
  }

  /** For people. */
  description(text: string): this {
    this.changed();
    this.text = text;
    return this;
  }

  /** A function of the context; a step with its config; a predefined step; a workflow. */
  step<Alias extends string, Result>(
    alias: Alias,
    fn: (context: StepContext<Input, Steps>) => Result,
    config?: StepConfig,
  ): WorkflowBuilder<Input, With<Steps, Alias, Result>>;
  step<Alias extends string>(
    alias: Alias,
    step: PredefinedStep | WorkflowReference | WorkflowDefinition | { build(): WorkflowDefinition },
    config?: StepConfig,
  ): WorkflowBuilder<Input, With<Steps, Alias, any>>;
  step<const Alias extends string, Result>(
    options: { alias: Alias } & StepOptions<(context: StepContext<Input, Steps>) => Result>,
  ): WorkflowBuilder<Input, With<Steps, Alias, Result>>;
  step(step: (context: StepContext<Input, Steps>) => unknown): this;
  step(step: StepEntryLike): this;
  step(first: unknown, second?: unknown, config?: StepConfig): unknown {
    if (typeof first !== "string") return this.push(first);
    const isPlain = typeof second === "object" && second !== null && ("fn" in second || "run" in second);
    return this.push(isPlain ? { ...second, alias: first, ...config } : { fn: second, alias: first, ...config });
  }

  /** Several at once, in this order. */
  steps(entries: StepEntryLike[]): this {
    if (!Array.isArray(entries)) throw new TypeError("steps: a list is needed");
    for (const entry of entries) this.push(entry);
    return this;
  }

  /** The same for each item of a list. */
  forEach<Item, const O extends ForEachOptions<(context: StepContext<Input, Steps>) => Item[] | Promise<Item[]>, BodyLike>>(
    options: O & { run: BodyLike | ((context: IterationContext<Input, Steps, Item>) => unknown) },
  ): WorkflowBuilder<Input, O extends Named ? With<Steps, AliasOf<O>, any> : Steps>;
  forEach<Alias extends string, Item>(
    alias: Alias,
    options: {
      items: Item[] | ((context: StepContext<Input, Steps>) => Item[] | Promise<Item[]>);
      run: BodyLike | ((context: IterationContext<Input, Steps, Item>) => unknown);
      parallel?: boolean;
      concurrency?: number;
      onFailure?: "fail" | "collect";
      label?: string;
    },
  ): WorkflowBuilder<Input, With<Steps, Alias, any>>;
  forEach(first: unknown, second?: unknown): unknown {
    return this.push(node("forEach", first, second));
  }

  /** Side by side. */
  concurrent<const O extends ConcurrentOptions>(
    options: O,
  ): WorkflowBuilder<Input, O extends Named ? With<Steps, AliasOf<O>, any> : Steps>;
  concurrent<Alias extends string>(
    alias: Alias,
    steps: ConcurrentOptions["steps"] | ConcurrentOptions,
  ): WorkflowBuilder<Input, With<Steps, Alias, any>>;
  concurrent(steps: ConcurrentOptions["steps"]): this;
  concurrent(first: unknown, second?: unknown): unknown {
    const list = (value: unknown): unknown => (Array.isArray(value) ? { steps: value } : value);
    return this.push(node("concurrent", list(first), list(second)));
  }

  /** The same as `concurrent`. */
  parallel<const O extends ConcurrentOptions>(
    options: O,
  ): WorkflowBuilder<Input, O extends Named ? With<Steps, AliasOf<O>, any> : Steps>;
  parallel<Alias extends string>(
    alias: Alias,
    steps: ConcurrentOptions["steps"] | ConcurrentOptions,
  ): WorkflowBuilder<Input, With<Steps, Alias, any>>;
  parallel(steps: ConcurrentOptions["steps"]): this;
  parallel(first: any, second?: any): unknown {
    return this.concurrent(first, second);
  }

  /** One path or the other. */
  branch(options: BranchOptions<(context: StepContext<Input, Steps>) => unknown>): this;
  branch<Alias extends string>(
    alias: Alias,
    options: BranchOptions<(context: StepContext<Input, Steps>) => unknown>,
  ): WorkflowBuilder<Input, With<Steps, Alias, any>>;
  branch(first: unknown, second?: unknown): unknown {
    return this.push(node("branch", first, second));
  }

  /** Again, while or until a condition holds. */
  loop(options: LoopOptions<(context: StepContext<Input, Steps>) => unknown>): this;
  loop<Alias extends string>(
    alias: Alias,
    options: LoopOptions<(context: StepContext<Input, Steps>) => unknown>,
  ): WorkflowBuilder<Input, With<Steps, Alias, any>>;
  loop(first: unknown, second?: unknown): unknown {
    return this.push(node("loop", first, second));
  }

  /** Another workflow as a step. */
  workflow(
    target: NestedOptions["workflow"],
    options: { alias?: string; input?: unknown; when?: StepFunction; description?: Description } = {},
  ): this {
    return this.push({ type: "workflow", workflow: target, ...options });
  }

  /** Runs when the run has failed. */
  onError(handler: ErrorHandler): this {
    this.changed();
    this.handler = handler;
    return this;
  }

  /** Schemas of results: one that does not fit fails its step. */
  results(results: Record<string, $ZodType> | { schemas: Record<string, $ZodType> }): this {
    this.changed();
    this.schemas = schemasOf(results);
    return this;
  }

  /** Nodes of whoever nests it that it reads. */
  needs(...aliases: string[]): this {
    this.changed();
    this.reads = aliases;
    return this;
  }

  /** The definition. Throws `WorkflowDefinitionError` with everything that is wrong. */
  build(): WorkflowDefinition<Input> {
    this.built ??= define<Input>(this.name, {
      steps: this.entries as StepEntryLike[],
      input: this.schema,
      description: this.text,
      onError: this.handler,
      results: this.schemas,
      needs: this.reads,
    });
    return this.built;
  }

  /** Build it, and offer it by engines of this process that are made afterwards. */
  register(): WorkflowDefinition<Input> {
    const definition = this.build();
    defaultRegistry.register(definition);
    return definition;
  }
}

/** `.forEach({ … })` or `.forEach("alias", { … })`. */
function node(type: string, first: unknown, second: unknown): unknown {
  if (typeof first !== "string") return { type, ...(first as object) };
  return { type, ...(second as object), alias: first };
}

export function createWorkflow(name: string): WorkflowBuilder {
  return new WorkflowBuilder(name);
}

/** A workflow from a list of steps: `defineWorkflow(name, findTree, chopTree)` or `defineWorkflow(name, { steps, … })`. */
export function defineWorkflow(name: string, ...steps: [WorkflowOptions] | StepEntryLike[]): WorkflowDefinition {
  const first = steps[0] as WorkflowOptions | undefined;
  const isOptions =
    steps.length === 1 &&
    typeof first === "object" &&
    Array.isArray(first.steps) &&
    !("type" in first) &&
    !("build" in first) &&
    !Object.hasOwn(first, "name");
  return define(name, isOptions ? first : { steps: steps as StepEntryLike[] });
}

/** Types of the predefined steps' results, for those who name them. */
export type { HttpResult };
