/** lifecycle.ts: what happens in the life of a schedule (a manifest), out of committed events: as src/engine/listen.c does in C. */
import type { RivalEvent } from "./events.js";

export type LifecycleType =
  | "dispatch"
  | "state_completed"
  | "stage_completed"
  | "suspend"
  | "redirect"
  | "exhausted"
  | "final"
  | "completed"
  | "aborted";

/** What a listener for one of these gets. */
export interface LifecycleEvent {
  type: LifecycleType;
  /** The same as `type`. */
  kind: LifecycleType;
  runId: string;
  workflow: string;
  path?: string;
  at: number;
  stage?: string;
  state?: string;
  /** From 0. */
  attempt?: number;
  succeed?: boolean;
  attachmentId?: string;
  error?: unknown;
  /** Of a redirect: the state that runs first. */
  to?: string;
}

const TYPES: readonly string[] = [
  "dispatch",
  "state_completed",
  "stage_completed",
  "suspend",
  "redirect",
  "exhausted",
  "final",
  "completed",
  "aborted",
];

export function isLifecycle(kind: string): kind is LifecycleType {
  return TYPES.includes(kind);
}

/** What the end of an attempt means for its state. */
const ENDS: Record<string, LifecycleType[]> = {
  done: ["state_completed"],
  final: ["state_completed", "final"],
  errored: ["state_completed", "exhausted"],
  suspend: ["state_completed", "exhausted"],
  redirect: ["redirect"],
};

function typesOf(event: RivalEvent): LifecycleType[] {
  switch (event.kind) {
    case "state.started":
      return ["dispatch"];
    case "state.ended":
      // Drained: it failed with attempts left, after a final state had completed.
      return (ENDS[String(event.next)] ?? []).filter((type) => type !== "exhausted" || event.drained !== true);
    case "node.completed":
      return event.stage === undefined ? [] : ["stage_completed"];
    case "run.completed":
      return ["completed"];
    case "run.failed":
    case "run.cancelled":
      return ["aborted"];
    case "run.suspended":
      return ["suspend"];
    default:
      return [];
  }
}

/** The lifecycle events that a committed one means, in order. */
export function lifecycleOf(event: RivalEvent): LifecycleEvent[] {
  const state = typeof event.state === "string" ? event.state : undefined; // else that of a step, an object
  const { runId, workflow, path, at } = event;
  const flat = {
    path,
    at,
    stage: event.stage as string | undefined,
    state,
    attempt: state !== undefined && typeof event.attempt === "number" ? event.attempt - 1 : undefined,
    succeed: event.succeed as boolean | undefined,
    attachmentId: event.attachmentId as string | undefined,
    error: event.kind === "run.suspended" ? event.reason : event.error,
    to: event.to as string | undefined,
  };
  const said = Object.fromEntries(Object.entries(flat).filter(([, value]) => value !== undefined)) as typeof flat;
  return typesOf(event).map((type) => ({ type, kind: type, runId, workflow, ...said }));
}

/** A suspension that is undecided, from a run as it stands: told again to whoever comes to listen. */
export interface Suspension {
  path?: string;
  reason?: string;
  since?: number;
  actions?: string[];
}

export function suspensionOf(run: { runId: string; workflow: string }, one: Suspension): LifecycleEvent {
  const { path } = one;
  // Only states can be skipped: the last two parts of their path are stage and state.
  const parts = one.actions?.includes("skip") === true ? (path?.split(":").slice(-2) ?? []) : [];
  return {
    type: "suspend",
    kind: "suspend",
    runId: run.runId,
    workflow: run.workflow,
    at: one.since ?? 0,
    ...(path === undefined ? {} : { path }),
    ...(parts.length === 2 ? { stage: parts[0]!, state: parts[1]! } : {}),
    ...(one.reason === undefined ? {} : { error: one.reason }),
  };
}
