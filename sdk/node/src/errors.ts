/** errors.ts: what steps throw, and what the SDK throws. */
import type { Backoff } from "./types.js";

export type StepBehavior = "stop" | "continue" | "retry";

export interface StepErrorOptions {
  /** Default `stop`. */
  behavior?: StepBehavior;
  /** With `retry`: may lower the configured number, never raise it. */
  maxAttempts?: number;
  /** With `retry`: wins over the configured one. */
  backoff?: Backoff;
  /** A short name that `retryOn`, `noRetryOn` and later steps can tell it by. */
  code?: string;
  cause?: unknown;
}

/** Thrown by a step to say what its failure means for the workflow. */
export class StepError extends Error {
  override readonly name = "StepError";
  readonly behavior: StepBehavior;
  readonly maxAttempts?: number;
  readonly backoff?: Backoff;
  readonly code?: string;

  constructor(message: string, options: StepErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const behavior = options.behavior ?? "stop";
    if (!["stop", "continue", "retry"].includes(behavior))
      throw new TypeError(`invalid behavior '${String(behavior)}': must be stop, continue or retry`);
    this.behavior = behavior;
    if (options.maxAttempts !== undefined) this.maxAttempts = options.maxAttempts;
    if (options.backoff !== undefined) this.backoff = options.backoff;
    if (options.code !== undefined) this.code = options.code;
  }
}

/** A workflow that cannot be built or registered. `violations` has everything that is wrong. */
export class WorkflowDefinitionError extends Error {
  override readonly name = "WorkflowDefinitionError";
  readonly violations: { path: string; message: string }[];

  constructor(workflow: string, violations: { path: string; message: string }[]) {
    const lines = violations.map((v) => (v.path ? `${v.path}: ${v.message}` : v.message));
    super(
      lines.length === 1
        ? `workflow '${workflow}': ${lines[0]}`
        : `workflow '${workflow}' has ${lines.length} mistakes:\n  ${lines.join("\n  ")}`,
    );
    this.violations = violations;
  }
}

export interface FileProblem {
  file: string;
  line?: number;
  column?: number;
  message: string;
}

/** Workflow files that could not be loaded, every one of them. The good ones are registered all the same. */
export class WorkflowFilesError extends Error {
  override readonly name = "WorkflowFilesError";
  readonly problems: FileProblem[];

  constructor(problems: FileProblem[]) {
    super(problems.map((p) => `${p.file}${p.line ? `:${p.line}` : ""}: ${p.message}`).join("\n"));
    this.problems = problems;
  }
}
