/* bars.ts: what a node did when: worked, waited for a place, for a retry, for a time or for somebody (a signal, or
 * a decision about what is suspended). */
import type { Attempt, RunNode } from "../../api/types";
import { onlyWaits, type Box } from "../plan";
import type { Span } from "./scale";

export type BarKind = "work" | "failed" | "lost" | "down" | "queue" | "retry" | "timer" | "signal" | "inside";

export const BAR_NAMES: Record<Exclude<BarKind, "inside">, string> = {
  work: "works",
  failed: "attempt that failed",
  lost: "attempt lost with its process",
  down: "server not running",
  queue: "waits for a place",
  retry: "waits to retry",
  timer: "waits for its time",
  signal: "waits for somebody",
};

export interface Bar extends Span {
  kind: BarKind;
  /** it goes on */
  open?: boolean;
}

function workOf(node: RunNode, box: Box | undefined): BarKind {
  if (node.children && node.kind !== "step") return "inside";
  if (onlyWaits(box)) return box!.node.kind === "delay" ? "timer" : "signal";
  return node.status === "failed" ? "failed" : "work";
}

/** Work of no time at all is still seen; a wait is not. */
const add = (bars: Bar[], kind: BarKind, from: number, to: number, open = false) => {
  if (to > from || open || (kind !== "queue" && kind !== "retry"))
    bars.push({ kind, from, to: Math.max(to, from), ...(open && { open }) });
};

/** From its attempts, where they are known; else from what its row tells. */
export function barsOf(node: RunNode, box: Box | undefined, now: number, attempts?: Attempt[]): Bar[] {
  const bars: Bar[] = [];
  if (node.startedAt === undefined) return bars;
  const work = workOf(node, box);
  const suspendedAt = node.status === "suspended" ? node.errorAt : undefined;
  if (attempts && attempts.length > 0) {
    attempts.forEach((attempt, i) => {
      if (attempt.startedAt === undefined) return;
      const last = i === attempts.length - 1;
      const open = attempt.completedAt === undefined && suspendedAt === undefined;
      const lost = attempt.outcome === "lost";
      const failed = attempt.outcome === "failed" || lost;
      // What was lost with the server was last heard of when that was: from there on nobody worked.
      const down = lost && attempt.downSince !== undefined ? Math.max(attempt.downSince, attempt.startedAt) : undefined;
      if (attempt.queueMs) add(bars, "queue", attempt.startedAt - attempt.queueMs, attempt.startedAt);
      add(
        bars,
        lost ? "lost" : failed ? "failed" : work === "failed" ? "work" : work,
        attempt.startedAt,
        down ?? attempt.completedAt ?? suspendedAt ?? now,
        open,
      );
      if (down !== undefined && attempt.completedAt !== undefined) add(bars, "down", down, attempt.completedAt);
      if (attempt.completedAt === undefined || attempt.dueAt === undefined || !failed) return;
      const next = attempts[i + 1];
      const until = next?.startedAt !== undefined ? Math.min(attempt.dueAt, next.startedAt) : attempt.dueAt;
      add(
        bars,
        "retry",
        attempt.completedAt,
        last ? Math.min(until, now) : until,
        last && node.status === "waiting_retry",
      );
    });
    if (suspendedAt !== undefined) add(bars, "signal", suspendedAt, now, true);
    return bars;
  }
  const end = node.completedAt ?? now;
  if (node.queueMs && !node.retryCount) add(bars, "queue", node.startedAt - node.queueMs, node.startedAt);
  if (node.status === "waiting_retry" && node.errorAt !== undefined) {
    add(bars, work, node.startedAt, node.errorAt);
    add(bars, "retry", node.errorAt, end, true);
  } else if (suspendedAt !== undefined) {
    add(bars, work, node.startedAt, suspendedAt);
    add(bars, "signal", suspendedAt, end, true);
  } else {
    add(bars, work, node.startedAt, end, node.completedAt === undefined);
  }
  return bars;
}

/** Does something work in it? What waits does not; what is closed may, so it counts. */
export function isBusy(bar: Bar): boolean {
  return bar.kind === "work" || bar.kind === "failed" || bar.kind === "lost" || bar.kind === "inside";
}
