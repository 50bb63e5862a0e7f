/* The documents of Rival's HTTP API, as the UI reads them. Times are milliseconds since 1970; a time
 * that has not come yet is absent. docs/reference/http-api.md says more about each. */
import type { LosslessNumber } from "lossless-json";

export type Json = null | boolean | number | LosslessNumber | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export const RUN_STATUSES = ["running", "suspended", "completed", "failed", "cancelled"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export type NodeStatus =
  | "pending"
  | "running"
  | "waiting_retry"
  | "completed"
  | "failed"
  | "skipped"
  | "cancelled"
  | "suspended";

export type Status = RunStatus | NodeStatus;

export type Role = "none" | "viewer" | "operator" | "admin";

export interface Session {
  role: Role;
  authRequired: boolean;
}

export interface RunError {
  message: string;
  stack?: string;
}

/** Why a run is suspended. */
export type Suspension = RunError;

/* ---- workflows ---- */

export interface WorkflowSummary {
  name: string;
  description?: string | null;
  version: string;
  source?: string | null;
  stepCount?: number;
  inputSchema?: JsonSchema | null;
}

export interface Workflow extends WorkflowSummary {
  plan: Plan;
}

export type JsonSchema = JsonObject | boolean;

export type PlanNodeType = "step" | "workflow" | "branch" | "loop" | "forEach" | "concurrent" | "stage";

/** A node of a plan. Which of the fields are there follows from `type`. */
export interface PlanNode {
  type: PlanNodeType;
  alias?: string;
  description?: string;
  /** step: function, command, http, delay, value, call, signal, … */
  kind?: string;
  /** workflow: the nested one's name; step: the function's */
  name?: string;
  when?: string;
  /** branch */
  if?: Json;
  then?: PlanNode[];
  else?: PlanNode[];
  /** loop */
  body?: PlanNode[];
  while?: Json;
  until?: Json;
  maxIterations?: number;
  /** forEach: its nodes are in `run` */
  items?: Json;
  run?: PlanNode[] | PlanNode;
  parallel?: boolean;
  concurrency?: number;
  /** workflow, concurrent */
  steps?: PlanNode[];
  [field: string]: unknown;
}

export interface Plan {
  name: string;
  description?: string;
  input?: JsonSchema;
  steps: PlanNode[];
  onError?: PlanNode;
}

/* ---- runs ---- */

export interface RunSummary {
  runId: string;
  workflow: string;
  version: string;
  status: RunStatus;
  createdAt: number;
  startedAt?: number;
  completedAt?: number;
  duration?: number;
  error?: RunError | null;
  failedStep?: string | null;
  /** suspended: why */
  suspension?: Suspension | null;
}

export interface RunPageOf {
  runs: RunSummary[];
  nextCursor: string | null;
}

export interface NodeResult {
  result: Json;
  state: JsonObject;
  status: NodeStatus;
}

export interface Run extends RunSummary {
  input: Json;
}

/** With what the nodes of the top level returned, which can be large. */
export interface RunWhole extends Run {
  results: Record<string, NodeResult>;
}

export interface RunStarted {
  runId: string;
  status: RunStatus;
}

/* ---- nodes of a run ---- */

export interface RunNode {
  path: string;
  alias: string;
  /** step, workflow, branch, loop, forEach, concurrent, iteration, … */
  kind: string;
  status: NodeStatus;
  startedAt?: number;
  completedAt?: number;
  duration?: number;
  queueMs?: number;
  /** waits for its timer until then */
  dueAt?: number;
  attempt?: number;
  retryCount?: number;
  crashes?: number;
  error?: RunError | null;
  errorAttempt?: number;
  errorAt?: number;
  description?: string | null;
  /** how many children it has (so far) */
  children?: number;
  /** forEach, loop: how its iterations fare; `total` where it is known how many there will be */
  iterations?: Iterations;
}

export interface Iterations {
  total?: number;
  running: number;
  completed: number;
  failed: number;
  cancelled: number;
}

export interface RunNodes {
  nodes: RunNode[];
  total: number;
  offset: number;
}

export interface Attempt {
  attempt: number;
  startedAt?: number;
  completedAt?: number;
  queueMs?: number;
  outcome?: string;
  error?: RunError | null;
  dueAt?: number;
}

/** One node with everything: what a card shows. */
export interface RunNodeDetail extends RunNode {
  input?: Json;
  result?: Json;
  state?: JsonObject;
  attempts?: Attempt[];
  /** attempts before the first of those */
  earlierAttempts?: number;
}

/* ---- why, logs ---- */

export interface WaitNode {
  path: string;
  since?: number;
  dueAt?: number;
  attempt?: number;
  name?: string;
}

export interface Wait {
  reason: string;
  count: number;
  since?: number;
  message: string;
  step?: string;
  dueAt?: number;
  name?: string;
  executor?: string;
  limit?: string;
  limitSize?: number;
  /** decision: why the run is suspended */
  cause?: Suspension;
  /** worker: the function that nobody offers */
  function?: string;
  nodes?: WaitNode[];
}

export interface Why {
  runId: string;
  status: RunStatus;
  waits: Wait[];
}

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogLine {
  id: number;
  level: LogLevel;
  message: string;
  timestamp: number;
  metadata?: Json;
  workflowId: string;
  stepName: string;
  path: string;
  attempt: number;
}

export interface Logs {
  logs: LogLine[];
  /** what `after` takes for the page behind this one */
  next: number;
}

/* ---- events ---- */

/** What the feed tells. `kind` is run.started, step.completed, log, …; fields beyond these follow from it. */
export interface FeedEvent {
  seq: number;
  index: number;
  kind: string;
  runId: string;
  workflow: string;
  at: number;
  path?: string;
  status?: Status;
  error?: RunError | null;
  /** run.suspended */
  reason?: Suspension;
  dueAt?: number;
  attempt?: number;
  [field: string]: unknown;
}

/* ---- refusals ---- */

export interface Violation {
  /** JSON pointer into the input */
  path: string;
  message: string;
}

/** RFC 9457. */
export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail?: string;
  /** 422: what the violations are about: "input", or the request's "body" around it */
  in?: string;
  violations?: Violation[];
}
