/** whole.ts: a context that comes as one value, taken apart into what an invocation is made of. */
import type { LoopContext, NodeError, StepEntry, StepState } from "../types.js";
import type { Frame } from "../wire/frames.js";
import type { Fetched, Wire } from "../worker/invocation.js";
import { Kept } from "../worker/values.js";

/** What the engine shows of a step, at once. */
export interface WholeContext {
  input: unknown;
  steps: Record<string, StepEntry>;
  lastStep: { result?: unknown; state: StepState; alias: string | null };
  loop?: LoopContext;
  run: Record<string, unknown>;
  /** In a handler. */
  error?: NodeError;
  failedStep?: unknown;
}

/** Its nodes, numbered from 1 in order of execution; behind them the node before, under a number of its own. */
export function keptOf(context: WholeContext): Kept {
  const kept = new Kept();
  const aliases = Object.keys(context.steps);
  aliases.forEach((alias, i) => {
    const { result, state, status, error } = context.steps[alias]!;
    kept.add({ type: "entry", entry: i + 1, ...(i === 0 ? {} : { before: i }), alias, status, state, error, json: result });
  });
  const { lastStep: last } = context;
  if (typeof last.alias === "string")
    kept.add({ type: "entry", entry: aliases.length + 1, alias: last.alias, status: "completed", state: last.state, json: last.result });
  return kept;
}

/** The `invoke` that would have come. */
export function frameOf(id: string, context: WholeContext, handles: string | undefined): Frame {
  const count = Object.keys(context.steps).length;
  const parents: number[] = [];
  for (let loop = context.loop?.parent; loop !== undefined; loop = loop.parent) parents.push(loop.index);
  return {
    type: "invoke",
    id,
    run: context.run,
    input: context.input,
    ...(count === 0 ? {} : { scope: count }),
    ...(typeof context.lastStep.alias === "string" ? { last: count + 1 } : {}),
    ...(context.loop === undefined ? {} : { index: context.loop.index, parents }),
    ...(handles === undefined ? {} : { handles }),
  };
}

/** Answers what is asked for out of the context. */
export class ContextWire implements Wire {
  constructor(
    private readonly context: WholeContext,
    readonly sendText: (json: string) => void,
  ) {}

  get(_id: string, part: string, of?: { alias: string }): Promise<Fetched> {
    const found = { value: this.part(part, of?.alias ?? "") };
    return Promise.resolve({ found, frame: { type: "value" } });
  }

  private part(part: string, alias: string): unknown {
    const { loop, error, failedStep } = this.context;
    if (part === "item" || part === "items") return loop?.[part];
    if (part === "error") return error;
    if (part === "failed") return failedStep;
    let above = loop?.parent;
    const names = alias.split(".");
    for (; names.length > 1; names.shift()) above = above?.parent;
    return above?.[names[0] as "item" | "items"];
  }
}
