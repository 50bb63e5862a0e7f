/**
 * invocation.ts: one function, run once for the engine: what it sees, what it says, how it ends.
 *
 * What the frame names is captured when it comes, since slots may be filled anew by the next frame. Then what the function may
 * read and has not come along is fetched, and the function runs. It ends in exactly one answer.
 */
import type { OfferedFunction } from "../define/lower.js";
import { safeParseAsync, type $ZodType } from "zod/v4/core";
import type {
  ErrorContext,
  LastStep,
  Logger,
  LogLevel,
  LoopContext,
  NodeError,
  RunInfo,
  StepContext,
  StepEntries,
  StepState,
} from "../types.js";
import type { Frame } from "../wire/frames.js";
import { isPending } from "./pending.js";
import { readsOf, type Reads } from "./reads.js";
import { ended, within } from "./unhandled.js";
import { Entry, FIRST, freeze, stepsOf, type Kept } from "./values.js";

const MAX_STACK = 16_384; // characters of a stack that are recorded
const LEVELS: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** What an invocation needs of its connection. */
export interface Wire {
  sendText(json: string): void;
  /** Ask for a part; the answer is the `value` frame, already kept. */
  get(id: string, part: string, of?: { entry?: number; alias: string }): Promise<Fetched>;
}

export interface Fetched {
  found: { value: unknown } | undefined;
  frame: Frame;
}

export class Invocation {
  readonly id: string;
  private readonly run: RunInfo;
  private readonly scope: Entry | undefined;
  private readonly lastEntry: Entry | undefined;
  private readonly index: number | undefined;
  private readonly parents: LoopContext[];
  private readonly handles: string | undefined;
  private input: { value: unknown } | undefined;
  private item: { value: unknown } | undefined;
  private items: { value: unknown } | undefined;
  private failed: { entry: ErrorContext["failedStep"]; error: NodeError } | undefined;
  /** The function may put another object in the place of its state. */
  private own: { state: StepState } = { state: {} };
  private controller: AbortController | undefined;
  private cancelled = false;
  private ended = false;
  private done: ((json: string) => void) | undefined;
  private shownSteps: StepEntries | undefined;
  private log: Logger | undefined;

  constructor(
    frame: Frame,
    kept: Kept,
    private readonly offered: OfferedFunction,
    private readonly wire: Wire,
  ) {
    this.id = frame.id!;
    this.run = Object.freeze(frame.run) as RunInfo;
    this.index = frame.index as number | undefined;
    this.parents = ((frame.parents ?? []) as number[]).map((index) => ({ item: undefined, index, items: undefined as unknown as unknown[] }));
    this.handles = frame.handles as string | undefined;
    this.scope = frame.scope === undefined ? undefined : kept.entry(frame.scope as number);
    this.lastEntry = frame.last === undefined ? undefined : kept.entry(frame.last as number);
    if ("input" in frame) this.input = { value: frame.input };
    else if (frame.inputSlot !== undefined) this.input = kept.slot(frame.inputSlot as number);
    if ("item" in frame) this.item = { value: frame.item };
    if (frame.itemsSlot !== undefined) this.items = kept.slot(frame.itemsSlot as number);
  }

  /** The run was cancelled, the attempt timed out, or the engine closes. */
  cancel(): void {
    this.cancelled = true;
    this.controller?.abort(new Error("the step was told to stop"));
  }

  /** A promise that it let go of was rejected. */
  fail(reason: unknown): boolean {
    if (this.ended) return false;
    this.done?.(this.error(reason));
    return true;
  }

  /** Run the function; `answer` gets the answer, a frame, once. Without a promise where nothing has to be waited for: that is most of the cost. */
  start(answer: (json: string) => void): void {
    const done = (json: string): void => {
      if (this.ended) return;
      this.ended = true;
      ended(this);
      answer(json);
    };
    this.done = done;
    try {
      const reads = readsOf(this.offered.fn);
      const fetching = this.fetch(reads);
      if (fetching === undefined) this.call(reads, done);
      else
        fetching.then(
          () => this.call(reads, done),
          (error: unknown) => done(this.error(error)),
        );
    } catch (error) {
      done(this.error(error));
    }
  }

  private call(reads: Reads, done: (json: string) => void): void {
    const failed = (error: unknown): void => done(this.error(error));
    try {
      const isUnread = reads.members !== undefined && reads.members.size === 0;
      const context = isUnread ? undefined : this.handles === undefined ? this.context() : this.handlerContext();
      const returned: unknown = within(this, () => (this.offered.fn as (context: unknown) => unknown)(context));
      if (isThenable(returned)) returned.then((value) => this.end(value, done), failed);
      else this.end(returned, done);
    } catch (error) {
      failed(error);
    }
  }

  private end(returned: unknown, done: (json: string) => void): void {
    const failed = (error: unknown): void => done(this.error(error));
    try {
      if (this.offered.result === undefined || this.own.state.skipped === true || isPending(returned)) done(this.result(returned));
      else fit(this.offered.result, returned).then((value) => done(this.result(value)), failed).catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  // --- what it sees ---------------------------------------------------------------------------------------------

  /** Everything that the function may read and that has not come along. Undefined: there is nothing to wait for. */
  private fetch(reads: Reads): Promise<unknown> | undefined {
    const may = (member: string): boolean => reads.members?.has(member) ?? true;
    const work: Promise<void>[] = [];
    const isHandler = this.handles !== undefined;
    const state = isHandler && may("workflowState");
    if (this.input === undefined && (state || may("input")))
      work.push(this.ask("input").then((found) => void (this.input = found ?? { value: null })));
    if (state || may("steps"))
      for (let entry = this.scope?.longs; entry !== undefined; entry = entry.before?.longs)
        if (!entry.here && (reads.steps === undefined || isHandler || reads.steps.has(entry.alias))) work.push(this.fill(entry));
    if (this.lastEntry?.here === false && !isHandler && may("lastStep")) work.push(this.fill(this.lastEntry));
    if (this.index !== undefined && may("loop")) {
      const loop = (member: string): boolean => reads.loop?.has(member) ?? true;
      if (this.item === undefined && loop("item")) work.push(this.ask("item").then((found) => void (this.item = found)));
      if (this.items === undefined && loop("items")) work.push(this.ask("items").then((found) => void (this.items = found)));
      if (loop("parent"))
        for (const member of ["item", "items"] as const)
          if (reads.parent?.has(member) ?? true)
            this.parents.forEach((parent, up) => work.push(this.fillParent(parent, `${"parent.".repeat(up)}${member}`, member)));
    }
    if (isHandler && (may("error") || may("failedStep"))) work.push(this.fetchFailure());
    return work.length > 0 ? Promise.all(work) : undefined;
  }

  private async ask(part: string): Promise<{ value: unknown } | undefined> {
    return (await this.wire.get(this.id, part)).found;
  }

  private async fill(entry: Entry): Promise<void> {
    const { found } = await this.wire.get(this.id, "step", { entry: entry.number, alias: entry.alias });
    entry.fill(found?.value ?? null);
  }

  private async fillParent(parent: LoopContext, alias: string, member: "item" | "items"): Promise<void> {
    parent[member] = (await this.wire.get(this.id, "parent", { alias })).found?.value as unknown[];
  }

  private async fetchFailure(): Promise<void> {
    const [error, failed] = await Promise.all([this.wire.get(this.id, "error"), this.wire.get(this.id, "failed")]);
    this.failed = {
      error: (error.found?.value ?? { message: "" }) as NodeError,
      entry: failed.found?.value as ErrorContext["failedStep"],
    };
  }

  /** @internal for contextOf */
  get inputValue(): unknown {
    // Without a schema and without an input there is nothing: undefined, as SPEC 2 says for TypeScript.
    return freeze(this.input?.value ?? undefined);
  }

  private context(): StepContext {
    const context = contextOf(this, this.run);
    if (this.index !== undefined) context.loop = this.loop();
    this.own = context;
    return context;
  }

  /** @internal for contextOf */
  get steps(): StepEntries {
    this.shownSteps ??= stepsOf(this.scope);
    return this.shownSteps;
  }

  /** @internal for contextOf */
  get lastStep(): LastStep {
    return this.lastEntry?.last ?? FIRST;
  }

  private loop(): LoopContext | undefined {
    if (this.index === undefined) return undefined;
    const parent = this.parents.reduceRight<LoopContext | undefined>((above, one) => around(one, above), undefined);
    return around({ item: this.item?.value, index: this.index, items: this.items?.value as unknown[] }, parent);
  }

  private handlerContext(): ErrorContext {
    const { failed, run } = this;
    const steps = stepsOf(this.scope);
    const input = this.inputValue;
    const status = this.handles as ErrorContext["workflowState"]["status"];
    return {
      error: freeze(failed?.error ?? { message: "" }),
      failedStep: freeze(failed?.entry) as ErrorContext["failedStep"],
      workflowState: { input, steps, status, runId: run.runId, workflowName: run.workflowName },
      log: this.logger(),
      run,
      signal: this.signal(),
    };
  }

  /** @internal for contextOf */
  signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.cancelled) this.cancel();
    }
    return this.controller.signal;
  }

  /** @internal for contextOf */
  logger(): Logger {
    return (this.log ??= this.makeLogger());
  }

  private makeLogger(): Logger {
    const line = (level: LogLevel) => (first: unknown, second?: unknown) => this.line(level, first, second);
    return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  }

  private line(level: LogLevel, first: unknown, second: unknown): void {
    const fields = typeof first === "object" && first !== null ? first : undefined;
    const metadata = fields instanceof Error ? { error: { message: fields.message, stack: fields.stack } } : fields;
    const message = fields === undefined ? String(first) : String(second ?? (fields as { msg?: unknown }).msg ?? (fields instanceof Error ? fields.message : ""));
    const frame = { type: "log", id: this.id, level: LEVELS[level], at: Date.now(), message, metadata };
    try {
      this.wire.sendText(JSON.stringify(frame));
    } catch {
      this.wire.sendText(JSON.stringify({ ...frame, metadata: undefined })); // a ring, a BigInt: the words are kept
    }
  }

  // --- how it ends ----------------------------------------------------------------------------------------------

  private stated(): { state?: StepState } {
    const { state } = this.own;
    return Object.keys(state).length > 0 ? { state } : {};
  }

  private result(returned: unknown): string {
    const said = this.stated();
    const state = said.state === undefined ? "" : `,"state":${JSON.stringify(said.state)}`;
    const head = `{"type":"result","id":${JSON.stringify(this.id)}${state}`;
    if (returned === null || returned === undefined) return `${head}}`;
    if (isPending(returned)) return `${head},"pending":${JSON.stringify(returned.handle)}}`;
    // A function or a symbol is no JSON and would vanish without a word.
    if (typeof returned === "function" || typeof returned === "symbol") throw new TypeError(`the result is a ${typeof returned}, which is no JSON`);
    const json = JSON.stringify(returned) as string | undefined; // undefined: its toJSON() says so
    return json === undefined ? `${head}}` : `${head},"result":${json}}`;
  }

  private error(thrown: unknown): string {
    const error = describe(thrown);
    const step = thrown as { behavior?: string; maxAttempts?: number; backoff?: string } | null;
    const told = error.name === "StepError" ? { behavior: step?.behavior, maxAttempts: step?.maxAttempts, backoff: step?.backoff } : {};
    const frame = { type: "error", id: this.id, error: error.json, ...told };
    try {
      return JSON.stringify({ ...frame, ...this.stated() });
    } catch {
      return JSON.stringify(frame); // the state itself is no JSON
    }
  }
}

/** An iteration, in the one around it. */
function around(one: LoopContext, parent: LoopContext | undefined): LoopContext {
  const { item, index, items } = one;
  return Object.freeze({ item: freeze(item), index, items: freeze(items), ...(parent === undefined ? {} : { parent }) });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** The result as its schema gives it back. */
async function fit(schema: $ZodType, result: unknown): Promise<unknown> {
  const parsed = await safeParseAsync(schema, result);
  if (parsed.success) return parsed.data;
  const why = parsed.error.issues.map((issue) => `${issue.path.map(String).join(".") || "it"}: ${issue.message}`);
  throw new Error(`the result does not fit its schema: ${why.join("; ")}`);
}

/** Members are made when they are read: most functions read two of them. They are its own, so that `{ ...rest }` has them. */
function contextOf(from: Invocation, run: RunInfo): StepContext {
  return {
    get input() {
      return from.inputValue;
    },
    get steps() {
      return from.steps;
    },
    get lastStep() {
      return from.lastStep;
    },
    state: {},
    get log() {
      return from.logger();
    },
    run,
    get signal() {
      return from.signal();
    },
  };
}

/** The stack down to the user's function: what called it is ours. */
function ownFrames(stack: string): string {
  const lines = stack.split("\n");
  const ours = lines.findIndex((line) => line.includes(HERE));
  return ours <= 0 ? stack : lines.slice(0, ours).join("\n");
}
const HERE = new URL(".", import.meta.url).pathname;

function describe(thrown: unknown): { name: string; json: Record<string, unknown> } {
  if (!(thrown instanceof Error) && !(typeof thrown === "object" && thrown !== null && "message" in thrown))
    return { name: "", json: { message: String(thrown) } };
  const error = thrown as Error & { code?: unknown };
  const stack = typeof error.stack === "string" ? ownFrames(error.stack).slice(0, MAX_STACK) : undefined;
  return {
    name: error.name,
    json: {
      message: String(error.message) || error.name,
      ...(error.name && error.name !== "Error" && error.name !== "StepError" ? { name: error.name } : {}),
      ...(typeof error.code === "string" ? { code: error.code } : {}),
      ...(stack === undefined ? {} : { stack }),
    },
  };
}
