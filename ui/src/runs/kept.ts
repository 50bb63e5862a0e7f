/* kept.ts: the list of runs as it was left, for who comes back to it: as far as it was read, and scrolled. */
import { cameBack } from "../app/navigation";
import type { RunRows } from "./runList";

interface Kept {
  list: RunRows;
  scroll: number;
}

/** Lists of so many filters. */
const MOST = 5;
const kept = new Map<string, Kept>();

export function keepList(filter: string, list: RunRows, scroll: number): void {
  kept.delete(filter);
  kept.set(filter, { list, scroll });
  if (kept.size > MOST) kept.delete(kept.keys().next().value!);
}

/** Only for who came back: a link leads to the top of what is there now. */
export function keptList(filter: string): Kept | undefined {
  return cameBack() ? kept.get(filter) : undefined;
}
