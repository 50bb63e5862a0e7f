/** rival: workflows that survive crashes. See README.md, and docs/guide/typescript.md in the repository. */
export { createWorkflow, defineWorkflow, type WorkflowBuilder } from "./define/builder.js";
export { compileWorkflow } from "./define/compile.js";
export type { WorkflowOptions } from "./define/definition.js";
export { planSchema } from "./define/plan-schema.js";
export { Results, type ResultsOf } from "./define/results.js";
export {
  delayStep,
  httpStep,
  signalStep,
  workflow,
  type DelayStepOptions,
  type Dynamic,
  type HttpResult,
  type HttpStepOptions,
  type NestOptions,
  type SignalStepOptions,
} from "./define/steps.js";
export * from "./engine/index.js";
export { WorkflowRegistry } from "./workflow-registry.js";
export { testEngine, type TestEngine, type TestOptions } from "./testing/testing.js";
export { pending, type PendingResult } from "./worker/pending.js";
export { ConnectionLostError, RefusedError } from "./worker/connection.js";
export {
  StepError,
  WorkflowDefinitionError,
  WorkflowFilesError,
  type FileProblem,
  type StepBehavior,
  type StepErrorOptions,
} from "./errors.js";
export { registerWorkflowFile, registerWorkflowsFromDirectory, type WorkflowMetadata } from "./registry.js";
export type * from "./types.js";
