/* schedule.ts: where the states of a stage are: blocked, ready, running, settled. */
import type { NodeStatus, RunNode } from "../../api/types";
import { dependenciesOf, priorityOf, type Box } from "../plan";

export interface Schedule {
  /** wait for what they depend on */
  blocked: Box[];
  /** by priority, then order */
  ready: Box[];
  running: Box[];
  /** in the order in which they settled */
  settled: Box[];
}

const SETTLED: NodeStatus[] = ["completed", "failed", "skipped", "cancelled"];

/** Has it had its last attempt? Errored counts as well. */
export const isSettled = (node: RunNode | undefined): boolean => node !== undefined && SETTLED.includes(node.status);

/** `nodeOf`: the node of a state, by its key; undefined: it has not begun. */
export function scheduleOf(stage: Box, nodeOf: (key: string) => RunNode | undefined): Schedule {
  const schedule: Schedule = { blocked: [], ready: [], running: [], settled: [] };
  const ownKey = `${stage.key}:`;
  for (const { boxes } of stage.lanes) {
    const box = boxes[0]!;
    const node = nodeOf(box.key);
    if (isSettled(node)) schedule.settled.push(box);
    else if (node?.status === "running" || node?.status === "suspended") schedule.running.push(box);
    else {
      // What is in an earlier stage has settled when this one begins.
      const open = dependenciesOf(box).some((key) => key.startsWith(ownKey) && !isSettled(nodeOf(key)));
      (open ? schedule.blocked : schedule.ready).push(box);
    }
  }
  schedule.ready.sort((a, b) => priorityOf(b) - priorityOf(a));
  const ended = (box: Box) => nodeOf(box.key)?.completedAt ?? 0;
  schedule.settled.sort((a, b) => ended(a) - ended(b));
  return schedule;
}
