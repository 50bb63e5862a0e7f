/* fold.ts: what an event means for a node that is on the screen.
 *
 * The server's own document is the truth and is read again soon; this is for the moment in between, so
 * that a step turns green when it does and not a second later. */
import type { FeedEvent, NodeStatus, RunNode } from "../../api/types";

const ENDED: Record<string, NodeStatus> = {
  "step.completed": "completed",
  "step.failed": "failed",
  "step.skipped": "skipped",
  "step.cancelled": "cancelled",
  "node.completed": "completed",
  "node.failed": "failed",
  "node.skipped": "skipped",
};

/** The node after the event; the same object when nothing is new. */
export function fold(node: RunNode, event: FeedEvent): RunNode {
  switch (event.kind) {
    case "step.started":
      return {
        ...running(node, event),
        attempt: event.attempt ?? node.attempt ?? 1,
        retryCount: (event.attempt ?? 1) - 1,
      };
    case "node.started":
      return running(node, event);
    case "step.retrying":
      return {
        ...node,
        status: "waiting_retry",
        dueAt: event.dueAt,
        error: event.error ?? undefined,
        errorAt: event.at,
        errorAttempt: node.attempt,
      };
    case "timer.armed":
      return { ...node, dueAt: event.dueAt };
    case "run.suspended": // the event of a run that names a node: the one it is suspended for
      return {
        ...node,
        status: "suspended",
        dueAt: undefined,
        error: event.reason,
        errorAt: event.at,
        errorAttempt: node.attempt,
      };
  }
  const status = ENDED[event.kind];
  if (!status) return node;
  return {
    ...node,
    status,
    dueAt: undefined,
    completedAt: event.at,
    ...(node.startedAt !== undefined && { duration: event.at - node.startedAt }),
    ...(event.error && { error: event.error ?? undefined, errorAt: event.at, errorAttempt: node.attempt }),
  };
}

function running(node: RunNode, event: FeedEvent): RunNode {
  return {
    ...node,
    status: "running",
    startedAt: node.startedAt ?? event.at,
    completedAt: undefined,
    duration: undefined,
    dueAt: undefined,
  };
}

/** Events by the path they are about, in order; logs are nobody's status. */
export function byPath(events: FeedEvent[]): Map<string, FeedEvent[]> {
  const map = new Map<string, FeedEvent[]>();
  for (const event of events) {
    if (event.path === undefined || event.kind === "log") continue;
    const list = map.get(event.path);
    if (list) list.push(event);
    else map.set(event.path, [event]);
  }
  return map;
}

/** The windows that events change: those of every path's parent, and of what that is in, up to the top (""). */
export function parentsOf(paths: Iterable<string>): Set<string> {
  const parents = new Set<string>([""]);
  for (const path of paths)
    for (let colon = path.lastIndexOf(":"); colon > 0; colon = path.lastIndexOf(":", colon - 1)) {
      const parent = path.slice(0, colon);
      if (parents.has(parent)) break; // and so are all above it
      parents.add(parent);
    }
  return parents;
}
