/** What `rival()` is made of. */
export {
  rival,
  RunTimeoutError,
  type Engine,
  type ListQuery,
  type RivalOptions,
  type RunStarted,
  type RunState,
  type RunSummary,
  type WaitOptions,
  type WorkflowExecutionResult,
  type WorkflowInstance,
} from "./engine.js";
export type { EventHandler, RivalEvent } from "./events.js";
export type { LifecycleEvent, LifecycleType } from "./lifecycle.js";
