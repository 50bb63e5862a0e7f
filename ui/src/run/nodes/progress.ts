/* progress.ts: how far a forEach or a loop is, in a few words. */
import type { RunNode } from "../../api/types";
import { count } from "./names";

/** "9,812 of 20,000 · 3 failed"; "" for what has no iterations. */
export function progressText(node: RunNode): string {
  if (node.kind !== "forEach" && node.kind !== "loop") return "";
  const { iterations } = node;
  if (!iterations) return node.children ? `${count(node.children)} begun` : "";
  const ended = iterations.completed + iterations.failed + iterations.cancelled;
  const words = [
    iterations.total !== undefined ? `${count(ended)} of ${count(iterations.total)}` : `${count(ended)} done`,
  ];
  if (iterations.running > 0) words.push(`${count(iterations.running)} running`);
  if (iterations.failed > 0) words.push(`${count(iterations.failed)} failed`);
  if (iterations.cancelled > 0) words.push(`${count(iterations.cancelled)} cancelled`);
  return words.join(" · ");
}

/** 0 to 1; undefined where nobody knows how many there will be. */
export function progressShare(node: RunNode): number | undefined {
  const { iterations } = node;
  if (!iterations?.total) return undefined;
  return (iterations.completed + iterations.failed + iterations.cancelled) / iterations.total;
}
