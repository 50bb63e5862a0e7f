/* names.tsx: how nodes are called on the screen. */
import type { RunNode } from "../../api/types";
import { formatDuration } from "../../parts/time";
import { kindOf, type Box } from "../plan";

const KIND_NAMES: Record<string, string> = {
  forEach: "for each",
  sequence: "sequence",
  iteration: "iteration",
  path: "path",
  child: "sequence",
  handler: "on error",
};

/** An iteration by its number, from 1 as people count; anything else by its alias. */
export function nameOf(node: Pick<RunNode, "alias" | "kind">): string {
  return node.kind === "iteration" ? `#${count(iterationOf(node.alias) + 1)}` : node.alias;
}

/** What an iteration is about: its label, else its item. "" for anything else. */
export function aboutOf(node: Pick<RunNode, "label" | "itemSummary">): string {
  return node.label ?? node.itemSummary ?? "";
}

/** "#2,345 · order 2344" */
export function titleOf(node: Pick<RunNode, "alias" | "kind" | "label" | "itemSummary">): string {
  const about = aboutOf(node);
  return about ? `${nameOf(node)} · ${about}` : nameOf(node);
}

/** "iter12" → 12 */
export function iterationOf(alias: string): number {
  return Number(alias.replace(/^\D+/, ""));
}

/** command, http, for each …: the plan knows more than the run about what a step does. */
export function kindNameOf(node: Pick<RunNode, "kind"> | undefined, box: Box | undefined): string {
  const kind = node && node.kind !== "step" ? node.kind : kindOf(box);
  return KIND_NAMES[kind] ?? kind;
}

export const count = (n: number) => n.toLocaleString("en");

/** "3 attempts", "4 crashes"; "" for the usual one attempt. */
export function attemptsOf(node: RunNode): string {
  const { attempt = 0, crashes = 0 } = node;
  const words = attempt > 1 ? [`${count(attempt)} attempts`] : [];
  if (crashes > 0) words.push(crashes === 1 ? "1 crash" : `${count(crashes)} crashes`);
  return words.join(", ");
}

/** How long it took; "" for one that has not ended. */
export function tookOf(node: RunNode): string {
  return node.startedAt !== undefined && node.completedAt !== undefined
    ? formatDuration(node.completedAt - node.startedAt)
    : "";
}
