/**
 * types.ts: what users write and what they get. No code.
 *
 * The untyped form (`function find({ input, steps })`) always works: everything defaults to `any`. Types appear where
 * there is something to infer them from: a Zod input, a step with an alias of its own, `Results`.
 */
import type { $ZodType, output } from "zod/v4/core";

/** How a node of a run stands. */
export type StepStatus =
  | "pending"
  | "running"
  | "waiting_retry"
  | "suspended"
  | "completed"
  | "failed"
  | "skipped"
  | "cancelled";

/** How a run stands. */
export type RunStatus =
  | "queued"
  | "running"
  | "suspended"
  | "compensating"
  | "completed"
  | "failed"
  | "cancelled";

/** A step's own writable state. Set keys, or replace values; all of it is recorded when the step ends. */
export interface StepState {
  /** A sentence for people: shown in the UI and by `rival show`. */
  description?: string;
  /** `true`: the step becomes `skipped` and its result `null`. */
  skipped?: boolean;
  [key: string]: any;
}

/** What went wrong with a node. */
export interface NodeError {
  message: string;
  code?: string;
  exitCode?: number;
  path?: string;
  stack?: string;
}

/** A node that ran before, as later steps see it: `steps.<alias>`. */
export interface StepEntry<Result = any> {
  result: Result;
  state: StepState;
  status: StepStatus;
  error?: NodeError;
}

/** The node before this one. It is always there: for the first node `result` is undefined and `alias` null. */
export interface LastStep<Result = any> {
  result: Result;
  state: StepState;
  alias: string | null;
  /** The same as `alias`. */
  stepName: string | null;
}

/** The steps that ran before, by alias, in order of execution. */
export type StepEntries = Record<string, StepEntry>;

/** Where in an iteration a step is. */
export interface LoopContext<Item = any> {
  item: Item;
  index: number;
  /** The items of the `forEach`; in a `loop` there are none. */
  items: Item[];
  /** The enclosing iteration. */
  parent?: LoopContext;
}

/** Which run, which step, which attempt. */
export interface RunInfo {
  runId: string;
  workflowName: string;
  stepName: string;
  path: string;
  /** From 1. */
  attempt: number;
  executionId: string;
  /** The same in every attempt of this step, and no other step's: for services that must not act twice. */
  idempotencyKey: string;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** `log.info("text")` or `log.info({ some: "fields" }, "text")`. */
export interface LogMethod {
  (message: string): void;
  (fields: object, message?: string): void;
}

export type Logger = Record<LogLevel, LogMethod>;

/** What a step function gets. Everything but `state` is read-only: values are shared by the steps of a run. */
export interface StepContext<Input = any, Steps = object> {
  /** The validated input of the workflow. */
  input: Input;
  /** Results of the nodes before, by alias. */
  steps: Steps & StepEntries;
  lastStep: LastStep;
  state: StepState;
  log: Logger;
  /** In an iteration of `forEach` or `loop` only. */
  loop?: LoopContext;
  run: RunInfo;
  /** Aborted when the run is cancelled, the step times out, or the engine closes. */
  signal: AbortSignal;
}

/** The context of a step inside a `forEach`. */
export type IterationContext<Input = any, Steps = object, Item = any> = StepContext<Input, Steps> & {
  loop: LoopContext<Item>;
};

// Parameters of functions that users pass are `any`-friendly on purpose: a plain `({ input }) => …` must fit.
export type StepFunction<Context = any, Result = any> = (context: Context) => Result | Promise<Result>;

/** What an `onError` handler gets. */
export interface ErrorContext<Input = any> {
  error: NodeError;
  failedStep: { result: any; state: StepState; alias: string; stepName: string; status: StepStatus };
  workflowState: {
    input: Input;
    steps: StepEntries;
    status: RunStatus;
    runId: string;
    workflowName: string;
  };
  log: Logger;
  run: RunInfo;
  signal: AbortSignal;
}

export type ErrorHandler = (context: ErrorContext<any>) => unknown;

export type Backoff = "linear" | "exponential";

/** How a step is tried, and tried again. Times are milliseconds. */
export interface StepConfig {
  /** Bounds each attempt, from its beginning. */
  timeout?: number;
  /** Default `stop`. */
  onTimeout?: "stop" | "retry";
  maxAttempts?: number;
  /** Default `linear`. */
  backoff?: Backoff;
  /** Default 100. */
  backoffBaseMs?: number;
  /** Default 60,000. */
  maxBackoffMs?: number;
  /** 0 to 1, default 0. */
  jitter?: number;
  retryOn?: (number | string)[];
  noRetryOn?: (number | string)[];
  /** A failure for good lets the workflow go on. */
  continueOnError?: boolean;
  /** Runs when the step has failed for good. */
  onError?: ErrorHandler;
  /** Aliases that the function reads: checked when the workflow is registered. */
  needs?: string[];
  /** Evaluated first; false: the step is skipped. */
  when?: StepFunction;
  description?: Description;
  /** Accepted and kept; the engine has no use for it. */
  actor?: { options?: ActorOptions };
}

/**
 * What is shown of a node that has completed: a text, or a function that makes one. It sees what a step after that node
 * would: the node is its `lastStep`. A `state.description` of the step itself comes first.
 */
export type Description = string | StepFunction;

/** Options of the original's actors. They are checked and kept in the plan. */
export interface ActorOptions {
  actionTimeout?: number;
  [key: string]: unknown;
}

/** A schema of the input: Zod (validates, and is published as JSON Schema), or JSON Schema itself. */
export type InputSchema = $ZodType | Record<string, unknown>;

export type InputOf<Schema> = Schema extends $ZodType ? output<Schema> : any;

// --- what users write -------------------------------------------------------------------------------------------

/** `{ fn, alias?, timeout?, … }`: a step with its config. `run` is another name of `fn`. */
export interface StepOptions<Fn = StepFunction | PredefinedStep> extends StepConfig {
  fn?: Fn;
  run?: Fn;
  alias?: string;
  name?: string;
}

/** Anything that can stand in a list of steps. */
export type StepEntryLike =
  | StepFunction
  | StepOptions
  | PredefinedStep
  | WorkflowReference
  | WorkflowDefinition
  | { build(): WorkflowDefinition }
  | ForEachOptions
  | ConcurrentOptions
  | BranchOptions
  | LoopOptions
  | NestedOptions;

/** What an iteration runs: one step, a workflow (whose nodes are then those of the iteration), or a list. */
export type BodyLike = StepEntryLike | StepEntryLike[];

interface NodeOptions {
  alias?: string;
  /** The same as `alias`. */
  name?: string;
  when?: StepFunction;
  description?: Description;
}

export interface ForEachOptions<Items = StepFunction, Run = BodyLike> extends NodeOptions {
  type?: "forEach";
  /** Returns the array to go through; or the array itself. */
  items: Items | unknown[];
  run: Run;
  /** Iterations side by side. */
  parallel?: boolean;
  /** At most so many at once; only with `parallel`. */
  concurrency?: number;
  onFailure?: "fail" | "collect";
  /** What an iteration is called in lists, an expression as in YAML: `"order ${ .loop.item.id }"`. Without it: its item. */
  label?: string;
}

export interface ConcurrentOptions extends NodeOptions {
  type?: "concurrent" | "parallel";
  steps: (StepEntryLike | { alias: string; steps: StepEntryLike[] })[];
  continueOn?: "all" | "detached";
  onFailure?: "fail" | "collect";
  join?: "all" | "first" | number;
}

export interface BranchOptions<Condition = StepFunction> extends NodeOptions {
  type?: "branch";
  if: Condition;
  then: StepEntryLike[];
  else?: StepEntryLike[];
}

export interface LoopOptions<Condition = StepFunction> extends NodeOptions {
  type?: "loop";
  body: BodyLike;
  /** Tested before each iteration. */
  while?: Condition;
  /** Tested after each iteration. */
  until?: Condition;
  /** Default 1,000. */
  maxIterations?: number;
  keep?: "all" | "last" | "none";
}

export interface NestedOptions extends NodeOptions {
  type: "workflow";
  workflow: string | WorkflowReference | WorkflowDefinition | { build(): WorkflowDefinition };
  /** The nested workflow's input: a value, or a function of the context. Default: the parent's. */
  input?: unknown;
}

/** A step that the engine does itself: made by `httpStep`, `delayStep`, `signalStep`. */
export interface PredefinedStep {
  readonly kind: "http" | "delay" | "signal";
  readonly options: Record<string, unknown>;
  readonly alias?: string;
}

/** A workflow to be nested: made by `workflow()`. */
export interface WorkflowReference {
  /** As it was written: a file, or the name of a workflow. */
  readonly target: string | WorkflowDefinition;
  /** The folder that a relative file is relative to, where it is known. */
  readonly base?: string;
  readonly alias?: string;
  readonly input?: unknown;
}

// --- what is built ----------------------------------------------------------------------------------------------

export interface StepDefinition {
  type?: undefined;
  id: string;
  alias: string;
  run: StepFunction | PredefinedStep;
  config?: StepConfig;
}

export interface ForEachDefinition {
  type: "forEach";
  id: string;
  alias: string;
  items: StepFunction | unknown[];
  run: BodyDefinition;
  parallel?: boolean;
  concurrency?: number;
  onFailure?: "fail" | "collect";
  label?: string;
  when?: StepFunction;
  description?: Description;
}

export interface ConcurrentDefinition {
  type: "concurrent";
  id: string;
  alias: string;
  steps: (NodeDefinition | { alias: string; nodes: NodeDefinition[] })[];
  continueOn: "all" | "detached";
  onFailure: "fail" | "collect";
  join?: "all" | "first" | number;
  when?: StepFunction;
  description?: Description;
}

export interface BranchDefinition {
  type: "branch";
  id: string;
  alias: string;
  if: StepFunction;
  then: NodeDefinition[];
  else?: NodeDefinition[];
  when?: StepFunction;
  description?: Description;
}

export interface LoopDefinition {
  type: "loop";
  id: string;
  alias: string;
  body: BodyDefinition;
  while?: StepFunction;
  until?: StepFunction;
  maxIterations?: number;
  keep?: "all" | "last" | "none";
  when?: StepFunction;
  description?: Description;
}

export interface NestedDefinition {
  type: "workflow";
  id: string;
  alias: string;
  /** Its definition; or a reference that is resolved when the workflow is registered. */
  workflow: WorkflowDefinition | WorkflowReference;
  input?: unknown;
  when?: StepFunction;
  description?: Description;
}

export type NodeDefinition =
  | StepDefinition
  | ForEachDefinition
  | ConcurrentDefinition
  | BranchDefinition
  | LoopDefinition
  | NestedDefinition;

/** One step, one workflow, or a list of nodes. */
export type BodyDefinition = NodeDefinition | WorkflowDefinition | WorkflowReference | NodeDefinition[];

/** A workflow: its nodes with their functions. */
export interface WorkflowDefinition<Input = any> {
  name: string;
  steps: NodeDefinition[];
  inputSchema?: InputSchema;
  description?: string;
  onError?: ErrorHandler;
  /** Schemas of results, by alias (`Results`): a result that does not fit fails its step. */
  results?: Record<string, $ZodType>;
  /** Nodes of whoever nests it that it reads. */
  needs?: string[];
  /** Where it was written, if it came from a file. */
  source?: string;
  /** For types only: there is no such member. */
  readonly __input?: Input;
}

// --- what is compiled -------------------------------------------------------------------------------------------

export interface StepPlanNode {
  type: "step";
  id: string;
  alias: string;
  actorRef: string;
  config?: Omit<StepConfig, "onError" | "when" | "description"> & { description?: string };
}

interface IterationPlanNode {
  type: "loop";
  id: string;
  alias: string;
  loopCoordinatorActorRef: string;
  run: PlanNode[];
}

/** A `forEach`. */
export interface ForEachPlanNode extends IterationPlanNode {
  iteratorActorRef: string;
  parallel?: boolean;
  concurrency?: number;
}

/** A `loop`. */
export interface LoopPlanNode extends IterationPlanNode {
  conditionActorRef: string;
  test: "while" | "until";
  maxIterations?: number;
}

export interface ParallelPlanNode {
  type: "parallel";
  id: string;
  alias: string;
  continueOn: "all" | "detached";
  onFailure: "fail" | "collect";
  join?: "all" | "first" | number;
  parallelCoordinatorActorRef: string;
  steps: PlanNode[];
}

export interface BranchPlanNode {
  type: "branch";
  id: string;
  alias: string;
  conditionActorRef: string;
  branchCoordinatorActorRef: string;
  then: PlanNode[];
  else: PlanNode[];
}

export interface WorkflowPlanNode {
  type: "workflow";
  id: string;
  alias: string;
  workflow: string;
  coordinatorActorRef: string;
  plan: PlanNode[];
}

export type PlanNode =
  | StepPlanNode
  | ForEachPlanNode
  | LoopPlanNode
  | ParallelPlanNode
  | BranchPlanNode
  | WorkflowPlanNode;

/** An actor: a node's owner, and the function in it, if there is one. */
export interface Actor {
  type: "step" | "iterator" | "condition" | "coordinator";
  run?: StepFunction | PredefinedStep;
  options?: ActorOptions;
}

export interface CompiledWorkflow {
  name: string;
  plan: PlanNode[];
  actors: Record<string, Actor>;
  coordinatorActorRef: string;
  inputSchema?: InputSchema;
  description?: string;
}
