/**
 * testing.ts: `testEngine()`: workflows under test: time is skipped, steps are replaced, crashes are arranged, and a seed repeats it all.
 *
 * The engine is the program's own test engine (`rival kit`, src/engine/kit_host.c): on a store in memory, with a clock that moves while
 * somebody waits or advances it, and one step at a time in an order that comes from the seed.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Workflow } from "../define/definition.js";
import type { OfferedFunction } from "../define/lower.js";
import { isZod, parseInput } from "../define/schema.js";
import { findProgram } from "../engine/child.js";
import { newRunId } from "../engine/ids.js";
import { RunTimeoutError, type RunStarted, type RunState, type WorkflowExecutionResult, type WorkflowInstance } from "../engine/engine.js";
import { catalogOf, type Catalog } from "../registry.js";
import type { StepFunction } from "../types.js";
import { RefusedError } from "../worker/connection.js";
import { Invocation } from "../worker/invocation.js";
import { unwatchRejections, watchRejections } from "../worker/unhandled.js";
import { FrameReader, FrameWriter, type Frame } from "../wire/frames.js";
import { ContextWire, frameOf, keptOf, type WholeContext } from "./whole.js";

const TIMED_OUT = -6;
const NOT_FOUND = -15;
const WAIT_MS = 300_000;

export interface TestOptions {
  /** Of the order of steps, of jitter, of crashes: the same seed does the same. Default 0. */
  seed?: number;
  /** The wall clock at the beginning, in milliseconds since 1970. Default: 2026-01-01. */
  startMs?: number;
  /** One commit in so many ends in a crash, before or after it. Default: none. */
  crashOneIn?: number;
  /** Steps in flight at once. Default 256. */
  workers?: number;
  /** A step to blame for more crashes suspends its run. Default: no limit. */
  maxCrashes?: number;
  /** The program, as for `rival()`. */
  bin?: string;
}

/** An engine for tests: `testEngine(…)` makes one. */
export class TestEngine {
  private readonly folder = mkdtempSync(join(tmpdir(), "rival-kit-"));
  private readonly functions = new Map<string, OfferedFunction>();
  private readonly replaced = new Map<string, OfferedFunction>();
  private readonly asked = new Map<string, { resolve: (frame: Frame) => void; reject: (error: Error) => void }>();
  /** Functions that run, the innermost last: one may wait for a run of its own. */
  private readonly running: { takes: number }[] = [];
  private opening: Promise<void> | undefined;
  private child: ChildProcess | undefined;
  private socket: Socket | undefined;
  private writer: FrameWriter | undefined;
  private next = 0;
  private ended: Error | undefined;

  constructor(
    private readonly options: TestOptions,
    private readonly catalog: Catalog,
  ) {}

  /** Start a run. Nothing of it happens before somebody waits or lets time pass. Bad input throws the `ZodError`. */
  async run(workflow: string, input?: unknown, runId: string = newRunId()): Promise<RunStarted> {
    await this.open();
    const schema = this.catalog.get(workflow)?.inputSchema;
    let given = input === undefined && schema !== undefined ? {} : input;
    if (isZod(schema)) {
      const parsed = await parseInput(schema, given);
      if (parsed.error !== undefined) throw parsed.error;
      given = parsed.input;
    }
    try {
      const { status } = await this.call("run", { workflow, runId, ...(given === undefined ? {} : { input: given }) });
      return { runId, status: status as RunStarted["status"] };
    } catch (error) {
      if (!(error instanceof RefusedError) || error.code !== NOT_FOUND) throw error;
      const names = this.catalog.all().map((one) => one.name);
      throw new Error(`there is no workflow '${workflow}'; available: ${names.sort().join(", ") || "none"}`, { cause: error });
    }
  }

  /** Run what can run and let time skip to the next timer, until the run has ended; or for so long by its clock. */
  async wait(workflow: string, runId: string, options: { timeoutMs?: number } = {}): Promise<WorkflowExecutionResult> {
    const timeoutMs = options.timeoutMs ?? WAIT_MS;
    try {
      return (await this.call("wait", { runId, timeoutMs, outcome: true })).outcome as WorkflowExecutionResult;
    } catch (error) {
      if (error instanceof RefusedError && error.code === TIMED_OUT) throw new RunTimeoutError(workflow, runId, timeoutMs);
      throw error;
    }
  }

  /** As `engine.get`. */
  get(workflow: string): { getOrCreate(runId?: string): WorkflowInstance } {
    return {
      getOrCreate: (runId = newRunId()) => ({
        workflow,
        runId,
        run: (id = runId, input?: unknown) => this.run(workflow, input, id),
        wait: (options) => this.wait(workflow, runId, options),
        cancel: () => this.cancel(runId),
        getState: () => this.state(runId),
      }),
    };
  }

  async state(runId: string): Promise<RunState> {
    return (await this.call("state", { runId })).state as RunState;
  }

  /** What a run waits for. */
  async why(runId: string): Promise<Record<string, unknown>> {
    const { why } = await this.call("why", { runId });
    return why as Record<string, unknown>;
  }

  async cancel(runId: string): Promise<void> {
    await this.call("cancel", { runId });
  }

  async signal(runId: string, name: string, payload: unknown = null, options: { force?: boolean } = {}): Promise<void> {
    await this.call("signal", { runId, name, payload, ...options });
  }

  async decide(runId: string, action: "resume" | "skip" | "abort" | "restart_stage", options: { path?: string; reason?: string } = {}): Promise<void> {
    await this.call("decide", { runId, action, ...options });
  }

  async complete(runId: string, handle: string, answer: { result?: unknown } | { error: string }): Promise<void> {
    await this.call("complete", { runId, handle, ...answer });
  }

  /** Let so many milliseconds pass, doing everything that falls due in them. 0: only what can be done now. */
  async advance(ms: number): Promise<void> {
    if (!Number.isSafeInteger(ms) || ms < 0) throw new TypeError(`advance: ${String(ms)} is no number of milliseconds`);
    await this.call("advance", { ms });
  }

  /** Its clock, in milliseconds since 1970. */
  async now(): Promise<number> {
    return (await this.call("now", {})).now as number;
  }

  /** Run this function instead of the step of that alias, whatever its kind, in every workflow; without one: no longer. */
  async replace(alias: string, fn?: StepFunction): Promise<void> {
    if (fn === undefined) this.replaced.delete(alias);
    else this.replaced.set(alias, { fn });
    await this.call("replace", { alias, on: fn !== undefined });
  }

  /** In a step: its answer comes so much later by the engine's clock, so that a time-out may be first. */
  takes(ms: number): void {
    const innermost = this.running.at(-1);
    if (innermost === undefined) throw new Error("takes: no step is running");
    innermost.takes = ms;
  }

  /** The process dies here and a new one opens the store: what was in flight is attempted again. Not from inside a step. */
  async crash(): Promise<void> {
    await this.call("crash", {});
  }

  /** How many crashes there were, of either kind. */
  async crashes(): Promise<number> {
    return (await this.call("now", {})).crashes as number;
  }

  close(): Promise<void> {
    const { child } = this;
    const over = child === undefined || child.exitCode !== null || child.signalCode !== null;
    const gone = over ? Promise.resolve() : new Promise<void>((resolve) => child.once("exit", () => resolve()));
    this.end(new Error("the test engine has been closed"));
    return gone;
  }

  // --- the program ----------------------------------------------------------------------------------------------

  private open(): Promise<void> {
    if (this.ended !== undefined) return Promise.reject(this.ended);
    this.opening ??= this.start();
    return this.opening;
  }

  private async start(): Promise<void> {
    const { bin, ...options } = this.options;
    const program = findProgram(bin);
    const path = join(this.folder, "kit.sock");
    const server = createServer();
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
    const child = spawn(program, ["kit", path], { stdio: ["ignore", "inherit", "inherit"] });
    this.child = child;
    child.once("exit", () => this.end(new Error("the test engine has ended")));
    this.socket = await new Promise<Socket>((resolve, reject) => {
      server.once("connection", resolve);
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the test engine did not start: exit code ${String(code)}`)));
    });
    server.close();
    const { socket } = this;
    const reader = new FrameReader((frame) => this.take(frame));
    this.writer = new FrameWriter((bytes) => socket.write(bytes));
    socket.on("data", (chunk) => reader.push(chunk));
    socket.on("error", () => undefined); // its end tells
    watchRejections();
    await this.ask("open", { ...options });
    const workflows = await this.catalog.lower();
    for (const { lowered } of workflows) for (const [name, fn] of lowered.functions) this.functions.set(name, fn);
    await this.ask("register", {
      workflows: workflows.map(({ definition, lowered }) => {
        // Zod has judged the input: the JSON Schema, which describes what may be sent, is not asked.
        const { input, ...plan } = lowered.plan;
        return { plan: isZod(definition.inputSchema) ? plan : lowered.plan, functions: [...lowered.functions.keys()] };
      }),
    });
  }

  private end(reason: Error): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    if (this.socket !== undefined) unwatchRejections();
    this.socket?.destroy();
    this.child?.kill();
    rmSync(this.folder, { recursive: true, force: true });
    for (const asked of this.asked.values()) asked.reject(reason);
    this.asked.clear();
  }

  private async call(method: string, members: Record<string, unknown>): Promise<Frame> {
    await this.open();
    return this.ask(method, members);
  }

  private ask(method: string, members: Record<string, unknown>): Promise<Frame> {
    if (this.ended !== undefined) return Promise.reject(this.ended);
    const id = `c${++this.next}`;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.writer!.send(JSON.stringify({ type: "call", id, method, ...members }));
    });
  }

  private take(frame: Frame): void {
    if (frame.type === "invoke") {
      this.invoke(frame);
      return;
    }
    const asked = this.asked.get(frame.id ?? "");
    this.asked.delete(frame.id ?? "");
    if (frame.type === "result") asked?.resolve(frame);
    else asked?.reject(new RefusedError(String(frame.message), Number(frame.code), frame.violations as { path: string; message: string }[] | undefined));
  }

  private invoke(frame: Frame): void {
    const id = frame.id!;
    const offered = frame.replaces === undefined ? this.functions.get(frame.function as string) : this.replaced.get(frame.replaces as string);
    if (offered === undefined) {
      this.writer!.send(JSON.stringify({ type: "error", id, error: { message: `there is no function '${String(frame.function ?? frame.replaces)}'` } }));
      return;
    }
    const context = frame.context as WholeContext;
    const kept = keptOf(context);
    const mark = { takes: 0 };
    this.running.push(mark);
    const invocation = new Invocation(frameOf(id, context, frame.handles as string | undefined), kept, offered, new ContextWire(context, (json) => this.writer?.send(json)));
    invocation.start((json) => {
      this.running.splice(this.running.indexOf(mark), 1);
      this.writer?.send(mark.takes > 0 ? `{"takes":${mark.takes},${json.slice(1)}` : json);
    });
  }
}

/**
 * An engine to test these workflows with, and those that were registered in this process:
 *
 *     const engine = testEngine({ seed: 7 }, order);
 *     await engine.replace("charge", () => ({ ok: true }));
 *     const { runId } = await engine.run("order", { item: "desk" });
 *     const { status } = await engine.wait("order", runId); // days of delays take milliseconds
 *     await engine.close();
 */
export function testEngine(...all: [TestOptions, ...Workflow[]] | Workflow[]): TestEngine {
  const { options, catalog } = catalogOf(all);
  return new TestEngine(options, catalog);
}
