/* Made from the server's /openapi.json by scripts/api-types.mjs: do not edit, run `npm run api-types`. */
import type { Json } from "./types";

/** Any JSON. */
export type Any = Json;

export type RunId = string;

export type RunStatus = "running" | "suspended" | "completed" | "failed" | "cancelled";

/** What went wrong. */
export interface Error {
  message: string;
  /** A short stable word: see the reference of errors. */
  code?: Json;
  /** Of a command. */
  exitCode?: number;
  /** The node that failed; of a supervisor, the deepest in it. */
  path?: string;
  /** Of an aborted run: why it had been suspended. */
  cause?: {
    message?: string;
  };
  stack?: string;
  attemptNumber?: number;
  /** Milliseconds since 1970. */
  occurredAt?: number;
}

/** What waits for a decision; without a path the run as a whole. */
export interface Suspension {
  path?: string;
  reason: Error;
  /** Milliseconds since 1970. */
  since: number;
  actions: ("resume" | "skip" | "abort" | "restart_stage")[];
}

export interface RunRef {
  runId: RunId;
  status: RunStatus;
  /** Of a start: the worker that validates inputs of this workflow was not connected; only the JSON Schema was checked. */
  validated?: "schema";
}

export interface Run {
  runId: RunId;
  workflow: string;
  version: string;
  status: RunStatus;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** Milliseconds since 1970; null: not yet. */
  startedAt?: number | null;
  /** Milliseconds since 1970; null: not yet. */
  completedAt?: number | null;
  /** Milliseconds; null: not over yet. */
  duration?: number | null;
  error?: Error;
  failedStep?: string;
  /** The deepest node that failed. */
  failedPath?: string;
  suspension?: Error;
  /** It waits for a signal or a decision. */
  waiting?: "somebody";
  /** The id of the run that it repeats. */
  rerunOf?: string;
  suspensions?: Suspension[];
  /** The beginning of its input, as text. */
  inputSummary?: string;
}

export interface RunList {
  runs: Run[];
  nextCursor: string | null;
}

export interface RunCounts {
  running: number;
  suspended: number;
  completed: number;
  failed: number;
  cancelled: number;
  waiting: number;
}

export interface Fared {
  ended: number;
  failed: number;
}

export interface WorkflowFared {
  workflow: string;
  ended: number;
  failed: number;
  /** Half of those that completed took about this long or less. */
  medianMs?: number;
  slowest?: {
    runId: RunId;
    /** Milliseconds. */
    duration: number;
  };
  /** 24, the oldest first; the last one is under way. */
  hours: Fared[];
}

export interface LongWaiting {
  runId: RunId;
  workflow: string;
  status: RunStatus;
  /** Milliseconds since 1970. */
  createdAt: number;
  suspension?: Error;
}

export interface Overview {
  /** Milliseconds since 1970. */
  from: number;
  /** Milliseconds since 1970. */
  to: number;
  /** False: not all that has ended is counted yet. Ask again. */
  complete: boolean;
  /** Runs that ended of workflows beyond the first 200. */
  others: number;
  workflows: WorkflowFared[];
  oldestWaiting: LongWaiting[];
  counts: RunCounts;
  health: StoreHealth;
}

export interface Member {
  id: string;
  /** Its number and machine. */
  process: string;
  version: string;
  runs: number;
  /** Milliseconds since 1970. */
  since: number;
  /** Milliseconds since 1970. */
  leaseUntil: number;
  /** Where workers reach it. */
  workers?: string;
  /** It answers this request. */
  self?: boolean;
}

/** The processes that share the store; none, where one process drives it. */
export interface Members {
  members: Member[];
}

export interface StoreHealth {
  /** The store takes writes. */
  ok: boolean;
  /** Milliseconds since 1970. */
  since?: number;
  attempts?: number;
  reason?: string;
  /** Of all that is in the store. */
  bytes: number;
}

export interface Bulk {
  matched: number;
  done: number;
  unchanged: number;
  failed: {
    runId: RunId;
    detail: string;
  }[];
  nextCursor: string | null;
}

export interface BulkAgain {
  matched: number;
  done: number;
  unchanged: number;
  failed: {
    runId: RunId;
    detail: string;
  }[];
  nextCursor: string | null;
  started: {
    runId: RunId;
    rerunOf: RunId;
  }[];
}

export interface Source {
  name: string;
  /** Its file. */
  source: string;
  language: "yaml" | "json" | "c" | "typescript" | "javascript" | "text";
  text: string;
}

export interface RunDetail {
  runId: RunId;
  workflow: string;
  version: string;
  status: RunStatus;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** Milliseconds since 1970; null: not yet. */
  startedAt?: number | null;
  /** Milliseconds since 1970; null: not yet. */
  completedAt?: number | null;
  /** Milliseconds; null: not over yet. */
  duration?: number | null;
  error?: Error;
  failedStep?: string;
  /** The deepest node that failed. */
  failedPath?: string;
  suspension?: Error;
  /** It waits for a signal or a decision. */
  waiting?: "somebody";
  /** The id of the run that it repeats. */
  rerunOf?: string;
  suspensions?: Suspension[];
  input: Any;
  results?: Results;
  /** Bytes of the results, if these are more than 64 MB: then results is {}, and they are read node by node. */
  resultsTooLarge?: number;
  steps: Node[];
}

/** By alias, the top-level nodes that were reached. */
export type Results = Record<
  string,
  {
    result?: Json;
    state?: Record<string, Json>;
    status: string;
    error?: Error;
  }
>;

export interface Outcome {
  runId: RunId;
  status: "completed" | "failed" | "cancelled";
  results: Results;
  /** Bytes of the results, if these are more than 64 MB: then results is {}, and they are read node by node. */
  resultsTooLarge?: number;
  error?: Error;
  failedStep?: string;
  /** The deepest node that failed. */
  failedPath?: string;
}

export interface Iterations {
  total?: number;
  running: number;
  completed: number;
  failed: number;
  cancelled: number;
}

export interface Node {
  path: string;
  alias: string;
  kind:
    | "step"
    | "workflow"
    | "branch"
    | "loop"
    | "forEach"
    | "concurrent"
    | "stage"
    | "iteration"
    | "path"
    | "child"
    | "state"
    | "handler";
  status: "pending" | "running" | "waiting_retry" | "completed" | "failed" | "skipped" | "cancelled" | "suspended";
  /** Milliseconds since 1970. */
  startedAt?: number;
  /** Milliseconds since 1970. */
  completedAt?: number;
  /** Milliseconds. */
  duration?: number;
  /** Milliseconds. */
  queueMs?: number;
  /** Milliseconds since 1970. */
  dueAt?: number;
  attempt?: number;
  retryCount?: number;
  crashes?: number;
  module?: string;
  error?: Error;
  errorAttempt?: number;
  /** Milliseconds since 1970. */
  errorAt?: number;
  description?: string;
  children: number;
  /** Of an iteration: what it is called. */
  label?: string;
  /** Of an iteration of a forEach: its item, as short text. */
  itemSummary?: string;
  iterations?: Iterations;
}

export interface NodeList {
  nodes: Node[];
  total: number;
  offset: number;
}

export interface NodeDetail {
  path: string;
  alias: string;
  kind:
    | "step"
    | "workflow"
    | "branch"
    | "loop"
    | "forEach"
    | "concurrent"
    | "stage"
    | "iteration"
    | "path"
    | "child"
    | "state"
    | "handler";
  status: "pending" | "running" | "waiting_retry" | "completed" | "failed" | "skipped" | "cancelled" | "suspended";
  /** Milliseconds since 1970. */
  startedAt?: number;
  /** Milliseconds since 1970. */
  completedAt?: number;
  /** Milliseconds. */
  duration?: number;
  /** Milliseconds. */
  queueMs?: number;
  /** Milliseconds since 1970. */
  dueAt?: number;
  attempt?: number;
  retryCount?: number;
  crashes?: number;
  module?: string;
  error?: Error;
  errorAttempt?: number;
  /** Milliseconds since 1970. */
  errorAt?: number;
  description?: string;
  children: number;
  /** Of an iteration: what it is called. */
  label?: string;
  /** Of an iteration of a forEach: its item, as short text. */
  itemSummary?: string;
  iterations?: Iterations;
  input?: Any;
  result?: Any;
  state?: Record<string, Json>;
  attempts: Attempt[];
  earlierAttempts?: number;
}

export interface Attempt {
  attempt: number;
  outcome: "running" | "completed" | "failed" | "skipped" | "cancelled" | "lost";
  /** Milliseconds since 1970. */
  startedAt: number;
  /** Milliseconds since 1970. */
  completedAt?: number;
  /** Milliseconds. */
  queueMs: number;
  /** Lost with the engine: when that was last heard of. */
  downSince?: number;
  /** Milliseconds since 1970. */
  dueAt?: number;
  /** Of a function of a C file: the hash of what was loaded. */
  module?: string;
  error?: Error;
  /** What it was given: argv, stdin, env, cwd; method, url, headers, body; delay, signal; values by path (.input.id). Secrets masked, at most 16 KB. */
  input?: Record<string, Json>;
}

/** A node of a plan; which members it has follows from its type; a sequence in a concurrent block has none. */
export interface PlanNode {
  type?: "step" | "workflow" | "branch" | "loop" | "forEach" | "concurrent" | "stage" | "chat";
  alias?: string;
  description?: Any;
  when?: Any;
  /** Of a step: function, command, http, delay, value, call, signal, … */
  kind?: string;
  /** Of a step: the function; of a workflow: which. */
  name?: string;
  with?: Any;
  if?: Any;
  then?: PlanNode[];
  else?: PlanNode[];
  body?: PlanNode[];
  while?: Any;
  until?: Any;
  maxIterations?: number;
  items?: Any;
  label?: Any;
  run?: PlanNode[] | PlanNode;
  parallel?: boolean;
  concurrency?: number;
  onFailure?: Any;
  input?: Any;
  inputSchema?: Any;
  steps?: PlanNode[];
  nodes?: PlanNode[];
  states?: PlanState[];
  onError?: PlanNode[] | PlanNode;
}

/** A state of a stage. */
export interface PlanState {
  alias: string;
  /** 100 if it is left out. */
  priority?: number;
  critical?: boolean;
  final?: boolean;
  maxRetry?: number;
  /** Milliseconds. */
  timeout?: number;
  /** The state that runs before a retry. */
  onFailure?: string;
  /** all if it is left out. */
  access?: "none" | "logs" | "explicit" | "all";
  agentId?: string;
  dependsOn?: Record<
    string,
    {
      state: string;
      stage?: string;
      field?: string;
    }
  >;
  agent?: PlanNode;
}

export interface Plan {
  type: "workflow";
  alias: string;
  name: string;
  description?: Any;
  inputSchema?: Any;
  steps: PlanNode[];
  onError?: PlanNode[] | PlanNode;
  finally?: PlanNode[] | PlanNode;
}

export interface WaitingNode {
  path: string;
  /** Milliseconds since 1970. */
  since?: number;
  /** Milliseconds since 1970. */
  dueAt?: number;
  attempt?: number;
  /** Of the signal. */
  name?: string;
  /** What a tool asks a person: the signal is the answer. */
  asks?: {
    message: string;
    url?: string;
    schema: Record<string, Json>;
  };
}

/** Nodes that wait for the same. */
export interface Wait {
  reason: string;
  count: number;
  /** Milliseconds since 1970. */
  since?: number;
  /** Milliseconds since 1970. */
  dueAt?: number;
  message: string;
  step?: string;
  /** Of the signal, or of the handle. */
  name?: string;
  executor?: string;
  /** Nobody offers it. */
  function?: string;
  /** It has no value. */
  secret?: string;
  limit?: string;
  limitSize?: number;
  evaluating?: string;
  attempt?: number;
  cause?: Error;
  nodes: WaitingNode[];
}

export interface Why {
  runId: RunId;
  status: RunStatus;
  /** The deepest node that failed. */
  failedPath?: string;
  waits: Wait[];
  /** Waits beyond those that are told. */
  others?: number;
}

export interface LogLine {
  id: number;
  level: "debug" | "info" | "warn" | "error";
  message: string;
  /** Milliseconds since 1970. */
  timestamp: number;
  metadata?: Any;
  runId: RunId;
  stepName: string;
  path: string;
  attempt: number;
  /** stream: a piece of an answer, gone once that is recorded. */
  kind?: string;
}

export interface LogList {
  logs: LogLine[];
  next: number;
}

export interface Attachment {
  /** [stage][state][agent]_YYMMDDTHHMMSS_attempt */
  id: string;
  stage: string;
  state: string;
  agent: string;
  path: string;
  /** From 0. */
  attempt: number;
  status: "init" | "running" | "finished" | "errored" | "skipped";
  description: string;
  /** Milliseconds since 1970. */
  startedAt: number;
  completedAt: number | null;
  /** Its stage was started again later. */
  superseded?: true;
}

export interface AttachmentList {
  attachments: Attachment[];
  total: number;
  offset: number;
}

export interface AttachmentDetail {
  /** [stage][state][agent]_YYMMDDTHHMMSS_attempt */
  id: string;
  stage: string;
  state: string;
  agent: string;
  path: string;
  /** From 0. */
  attempt: number;
  status: "init" | "running" | "finished" | "errored" | "skipped";
  description: string;
  /** Milliseconds since 1970. */
  startedAt: number;
  completedAt: number | null;
  /** Its stage was started again later. */
  superseded?: true;
  result?: Any;
  error?: Error;
}

export interface Event {
  seq: number;
  index: number;
  kind: string;
  runId: RunId;
  workflow: string;
  /** Milliseconds since 1970. */
  at: number;
  path?: string;
  status?: RunStatus;
  attempt?: number;
  error?: Error;
  /** Milliseconds since 1970. */
  dueAt?: number;
  /** Who did it: the name of the token, or the user. */
  by?: string;
  reason?: Error;
  decision?: "resume" | "skip" | "restart_stage" | "abort";
  version?: string;
  input?: Any;
  inputBytes?: number;
  result?: Any;
  resultBytes?: number;
  state?: Record<string, Json>;
  stateBytes?: number;
  errorBytes?: number;
  reasonBytes?: number;
  description?: Any;
  descriptionBytes?: number;
  /** The failure fails its sequence. */
  stops?: boolean;
  failedStep?: string;
  /** The deepest node that failed. */
  failedPath?: string;
  /** Of the signal. */
  name?: string;
  payload?: Any;
  payloadBytes?: number;
  succeed?: boolean;
  next?: string;
  to?: string;
  level?: "debug" | "info" | "warn" | "error";
  message?: string;
  metadata?: Any;
  stepName?: string;
  /** The line is a piece of an answer, gone once that is recorded. */
  stream?: boolean;
}

export interface History {
  events: Event[];
  /** `after` of the next page. */
  next: string | null;
  /** False: that was all, as of now. */
  more: boolean;
}

export interface Workflow {
  name: string;
  description: string;
  version: string;
  /** Its file; empty: registered by a program. */
  source: string;
  stepCount: number;
  /** Why no run can be started now, such as a secret without a value. */
  cannotStart?: string;
  inputSchema?: Any;
}

export interface WorkflowDetail {
  name: string;
  description: string;
  version: string;
  /** Its file; empty: registered by a program. */
  source: string;
  stepCount: number;
  /** Why no run can be started now, such as a secret without a value. */
  cannotStart?: string;
  inputSchema?: Any;
  plan: Plan;
}

export interface WorkflowList {
  workflows: Workflow[];
}

export interface Session {
  role: "none" | "worker" | "viewer" | "operator" | "admin";
  /** Of the owner of the token. */
  name?: string;
  /** There is a token file. */
  authRequired: boolean;
}

export interface Health {
  status: "ok";
  workflows?: number;
}

export interface Worker {
  /** As it calls itself; may be empty. */
  name: string;
  /** Steps that it takes at once. */
  credits: number;
  /** Steps that it has. */
  busy: number;
  /** It is a process of the same machine. */
  local: boolean;
}

export interface Workers {
  protocol: 2;
  /** The TCP address; null: there is none. */
  listen: null | {
    host: string;
    port: number;
    tls: boolean;
  };
  /** The Unix socket beside the store, for callers on the same machine. */
  socket: string | null;
  connections: Worker[];
}

export interface Violation {
  path: string;
  message: string;
}

/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** 422: what the paths point into. */
  in?: "input" | "body";
  violations?: Violation[];
  /** 409: what waits for a decision. */
  paths?: string[];
  code?: string;
  omitted?: number;
  runStatus?: RunStatus;
  /** Milliseconds since 1970. */
  since?: number;
  attempts?: number;
}
