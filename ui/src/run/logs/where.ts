/* where.ts: of which node the log is shown, as it stands in the address: a path in which an iteration may be left
 * open ("tables:iter1:node0:rows:iter*:node0:insert": insert, in all rows of the second table). */
import { ANY_ITERATION, isIterated, isSupervisor, wayTo, type Box, type Passed } from "../plan";

/** Is an iteration of this chosen? */
export const chosenIn = ({ iteration }: Passed): number | undefined =>
  iteration === undefined || Number.isNaN(iteration) ? undefined : iteration;

/** With another iteration of the box at `place` of its way; undefined: any. Those further in are left open. */
export function withIteration(way: readonly Passed[], place: number, iteration: number | undefined): string {
  const parts: string[] = [];
  way.forEach(({ box }, i) => {
    parts.push(box.own);
    if (i === way.length - 1 && i !== place) return;
    const chosen = i < place ? chosenIn(way[i]!) : i === place ? iteration : undefined;
    if (isIterated(box)) parts.push(chosen === undefined ? ANY_ITERATION : `iter${chosen}`);
  });
  return parts.join(":").replace(/:iter\*$/, "");
}

/** What the server is asked for: all in the deepest node that is sure; of that, one step by its alias. */
export function logQueryOf(boxes: Map<string, Box>, where: string): { path?: string; step?: string } {
  if (where === "") return {};
  const open = where.indexOf(`:${ANY_ITERATION}`);
  if (open < 0) return { path: where };
  const box = wayTo(boxes, where).at(-1)?.box;
  return { path: where.slice(0, open), ...(box && !isSupervisor(box) && { step: box.alias }) };
}
