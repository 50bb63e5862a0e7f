/** engine.ts: `rival()`: an engine with workflows: started here, or somewhere else. */
import { hostname } from "node:os";
import { existsSync } from "node:fs";
import type { Workflow } from "../define/definition.js";
import { isZod, parseInput } from "../define/schema.js";
import { catalogOf, type Catalog, type WorkflowMetadata } from "../registry.js";
import type { NodeError, RunStatus, StepEntries } from "../types.js";
import { RefusedError, type Address, type Connection } from "../worker/connection.js";
import { Connections } from "../worker/connections.js";
import { hashOf, offersOf } from "../worker/offers.js";
import { EngineChild, type ChildOptions } from "./child.js";
import { EventFeed, type EventHandler } from "./events.js";
import { HttpApi, HttpError } from "./http.js";
import { newRunId } from "./ids.js";

const NOT_FOUND = -15;
const TIMED_OUT = -6;
const DEFAULT_CONCURRENCY = 100;
const CLOSE_GRACE_MS = 5000;
const WAIT_DEFAULTS = { timeoutMs: 300_000, pollIntervalMs: 250, preferEvents: true, eventWaitTimeoutMs: 3000 };
const TERMINAL: readonly string[] = ["completed", "failed", "cancelled"];

export interface RivalOptions extends ChildOptions {
  /** The address of a server. Without it an engine is started as a child of this process. */
  url?: string;
  /** A token of that server, of role operator or admin. */
  token?: string;
  /** A token of role worker, where it is another one. */
  workerToken?: string;
  /** At most so many functions run here at once. Default 100. */
  concurrency?: number;
}

export interface WaitOptions {
  /** Default 300,000. */
  timeoutMs?: number;
  /** Default 250. */
  pollIntervalMs?: number;
  /** Default true: be told, and poll only where that fails. */
  preferEvents?: boolean;
  /** Default 3,000: how long to wait to be told before looking. */
  eventWaitTimeoutMs?: number;
}

export interface RunStarted {
  runId: string;
  status: RunStatus;
  /** `schema`: only the JSON Schema has judged the input, since no process with the Zod schema was connected. */
  validated?: "schema";
}

/** How a run ended. */
export interface WorkflowExecutionResult {
  runId: string;
  status: "completed" | "failed" | "cancelled";
  results: StepEntries;
  error?: NodeError | string;
  /** The alias of the top-level node that failed. */
  failedStep?: string;
  /** The deepest node that failed. */
  failedPath?: string;
  /** The results have so many bytes that they are left out: read them node by node. */
  resultsTooLarge?: number;
}

export interface RunSummary {
  runId: string;
  workflow: string;
  version: string;
  status: RunStatus;
  createdAt: number;
  startedAt: number | null;
  completedAt: number | null;
  duration: number | null;
  error?: NodeError;
  failedStep?: string;
}

export interface RunState extends RunSummary {
  input: unknown;
  results: StepEntries;
  steps: Record<string, unknown>[];
  [key: string]: unknown;
}

export interface ListQuery {
  workflow?: string;
  status?: RunStatus;
  since?: number;
  until?: number;
  q?: string;
  limit?: number;
  cursor?: string;
}

/** A run that did not end in time. */
export class RunTimeoutError extends Error {
  override readonly name = "RunTimeoutError";
  constructor(
    readonly workflow: string,
    readonly runId: string,
    readonly waitedMs: number,
  ) {
    super(`run '${runId}' of workflow '${workflow}' has not ended after ${waitedMs} ms`);
  }
}

/** One run, by workflow and id. */
export interface WorkflowInstance {
  readonly workflow: string;
  readonly runId: string;
  run(runId?: string, input?: unknown): Promise<RunStarted>;
  wait(options?: WaitOptions): Promise<WorkflowExecutionResult>;
  cancel(): Promise<void>;
  getState(): Promise<RunState>;
}

/** An engine: `rival(…)` makes one. */
export class Engine {
  private readonly child: EngineChild | undefined;
  private readonly api: HttpApi;
  private readonly feed: EventFeed;
  private started: Promise<Connection | undefined> | undefined;
  /** Calls go over the socket where there is one: it is quicker than HTTP. */
  private local = false;
  private closed = false;

  constructor(
    private readonly options: RivalOptions,
    private readonly catalog: Catalog,
  ) {
    const { url } = options;
    this.child = url === undefined ? new EngineChild(options) : undefined;
    this.api = new HttpApi(() => this.child?.url() ?? Promise.resolve(url!), this.child?.token ?? options.token);
    this.feed = new EventFeed(this.api, (error) => {
      console.error("rival: a listener failed:", error);
    });
  }

  /** Until it is connected and offers its workflows. Every call does this by itself. */
  async ready(): Promise<void> {
    await this.connect();
  }

  private connect(): Promise<Connection | undefined> {
    if (this.closed) return Promise.reject(new Error("the engine has been closed"));
    this.started ??= this.offer();
    return this.started;
  }

  private async offer(): Promise<Connection | undefined> {
    const workflows = await this.catalog.lower();
    const offers = offersOf(workflows);
    if (offers.length === 0 && this.catalog.functions.size === 0) return undefined; // it only asks
    const token = this.options.workerToken ?? this.options.token;
    const connections = new Connections({
      address: () => this.address(),
      ...(token === undefined ? {} : { token }),
      credits: this.options.concurrency ?? DEFAULT_CONCURRENCY,
      name: `node@${hostname()}`,
      offers,
      functions: new Map([...this.catalog.functions].map(([name, fn]) => [name, { fn }])),
      module: hashOf(offers),
      onTaken: (workflows) => {
        for (const { name, version } of workflows) this.catalog.versions.set(name, version);
      },
    });
    this.connections = connections;
    await connections.first.open();
    return connections.first;
  }
  private connections: Connections | undefined;

  /** Where the worker connection goes. */
  private async address(): Promise<Address> {
    const url = await (this.child?.url() ?? this.options.url!);
    if (this.child?.socket !== undefined) {
      this.local = true;
      return { path: this.child.socket };
    }
    const where = (await this.api.request("GET", "api/v1/workers").catch((error: unknown) => {
      if (error instanceof HttpError && error.status === 404) return {}; // a server that knows no workers
      throw error;
    })) as { listen?: { host: string; port: number; tls: boolean } | null; socket?: string | null };
    if (typeof where.socket === "string" && existsSync(where.socket)) {
      this.local = true;
      return { path: where.socket };
    }
    this.local = false;
    if (where.listen == null) throw new RefusedError("the server takes no workers: only calls are possible", NOT_FOUND);
    const { hostname: named } = new URL(url);
    const anywhere = ["0.0.0.0", "::", "*"].includes(where.listen.host);
    const token = this.options.workerToken ?? this.options.token;
    return {
      host: anywhere ? named : where.listen.host,
      port: where.listen.port,
      tls: where.listen.tls,
      ...(token === undefined ? {} : { token }),
    };
  }

  /** Start a run, and return at once. Bad input throws the `ZodError` itself; there is no run then. */
  async run(workflow: string, input?: unknown, runId?: string): Promise<RunStarted> {
    await this.catalog.settled();
    const definition = this.catalog.get(workflow);
    const schema = definition?.inputSchema;
    const given = input === undefined && schema !== undefined ? {} : input;
    if (isZod(schema)) {
      const parsed = await parseInput(schema, given);
      if (parsed.error !== undefined) throw parsed.error;
    }
    const connection = await this.connect();
    await this.feed.ready();
    const id = runId ?? newRunId();
    try {
      if (connection !== undefined && this.local) {
        const frame = await connection.call("run", { workflow, runId: id, ...(given === undefined ? {} : { input: given }) }, true);
        return started(frame);
      }
      const path = `api/v1/workflows/${encodeURIComponent(workflow)}/runs`;
      return started(await this.api.request("POST", path, { runId: id, ...(given === undefined ? {} : { input: given }) }));
    } catch (error) {
      if (error instanceof RefusedError && error.code === NOT_FOUND) throw await this.unknown(workflow);
      throw error;
    }
  }

  private async unknown(workflow: string): Promise<Error> {
    const names = new Set(this.catalog.all().map((one) => one.name));
    try {
      const { workflows } = (await this.api.request("GET", "api/v1/workflows")) as { workflows: { name: string }[] };
      for (const { name } of workflows) names.add(name);
    } catch {
      // what is known here has to do
    }
    const list = [...names].sort().join(", ");
    return new Error(`there is no workflow '${workflow}'; available: ${list === "" ? "none" : list}`);
  }

  /** Wait until a run has ended. */
  async wait(workflow: string, runId: string, options: WaitOptions = {}): Promise<WorkflowExecutionResult> {
    const { timeoutMs, pollIntervalMs, preferEvents, eventWaitTimeoutMs } = { ...WAIT_DEFAULTS, ...options };
    const began = Date.now();
    const left = (): number => began + timeoutMs - Date.now();
    const connection = await this.connect();
    for (let looked = false; ; looked = true) {
      const told = preferEvents && looked ? Math.min(eventWaitTimeoutMs, Math.max(left(), 0)) : 0;
      const outcome = await this.outcome(connection, runId, told);
      if (outcome !== undefined) return outcome;
      if (left() <= 0) throw new RunTimeoutError(workflow, runId, timeoutMs);
      if (!preferEvents) await new Promise((done) => setTimeout(done, Math.min(pollIntervalMs, Math.max(left(), 0))));
    }
  }

  /** The outcome, if the run ends within so many milliseconds. */
  private async outcome(connection: Connection | undefined, runId: string, timeoutMs: number): Promise<WorkflowExecutionResult | undefined> {
    try {
      if (connection !== undefined && this.local) {
        const frame = await connection.call("wait", { runId, timeoutMs, outcome: true }, true);
        return frame.outcome as WorkflowExecutionResult;
      }
      return (await this.api.request("GET", `${pathOf(runId)}/wait?timeoutMs=${timeoutMs}`)) as WorkflowExecutionResult;
    } catch (error) {
      const notYet = error instanceof HttpError ? error.status === 408 : error instanceof RefusedError && error.code === TIMED_OUT;
      if (notYet) return undefined;
      throw error;
    }
  }

  /** The runs of a workflow: `engine.get("order").getOrCreate("order-1")`. */
  get(workflow: string): { getOrCreate(runId?: string): WorkflowInstance } {
    return { getOrCreate: (runId = newRunId()) => this.instance(workflow, runId) };
  }

  private instance(workflow: string, runId: string): WorkflowInstance {
    return {
      workflow,
      runId,
      run: (id = runId, input?: unknown) => this.run(workflow, input, id),
      wait: (options) => this.wait(workflow, runId, options),
      cancel: () => this.cancel(runId),
      getState: () => this.state(runId),
    };
  }

  /** A run as it stands, with results and metrics. */
  async state(runId: string): Promise<RunState> {
    await this.connect();
    return (await this.api.request("GET", pathOf(runId))) as RunState;
  }

  /** Runs, the newest first. */
  async list(query: ListQuery = {}): Promise<{ runs: RunSummary[]; nextCursor: string | null }> {
    await this.connect();
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value));
    return (await this.api.request("GET", `api/v1/runs?${search.toString()}`)) as { runs: RunSummary[]; nextCursor: string | null };
  }

  /** What can be run. */
  async workflows(): Promise<{ name: string; description?: string; inputSchema?: unknown; stepCount: number; version: string; source?: string }[]> {
    await this.connect();
    return ((await this.api.request("GET", "api/v1/workflows")) as { workflows: any[] }).workflows;
  }

  /** What a run waits for. */
  async why(runId: string): Promise<Record<string, unknown>> {
    await this.connect();
    return (await this.api.request("GET", `${pathOf(runId)}/why`)) as Record<string, unknown>;
  }

  /** Its log, in order. */
  async logs(runId: string, query: { step?: string; level?: string; q?: string; limit?: number } = {}): Promise<Record<string, unknown>[]> {
    await this.connect();
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value));
    const { logs } = (await this.api.request("GET", `${pathOf(runId)}/logs?${search.toString()}`)) as { logs: Record<string, unknown>[] };
    return logs.map((line) => ({ ...line, workflowId: runId }));
  }

  /** Cancel a run and everything in it. One that has ended is left as it is. */
  async cancel(runId: string): Promise<void> {
    await this.connect();
    await this.api.request("POST", `${pathOf(runId)}/cancel`);
  }

  /** Send a message to a run: a step that waits for it gets it. */
  async signal(runId: string, name: string, payload: unknown = null, options: { force?: boolean } = {}): Promise<void> {
    await this.connect();
    const query = options.force === true ? "?force=true" : "";
    await this.api.request("POST", `${pathOf(runId)}/signals/${encodeURIComponent(name)}${query}`, payload);
  }

  /** Decide about a run that is suspended. */
  async decide(
    runId: string,
    action: "resume" | "skip" | "abort" | "restart_stage",
    options: { path?: string; reason?: string } = {},
  ): Promise<void> {
    await this.connect();
    await this.api.request("POST", `${pathOf(runId)}/decide`, { action, ...options });
  }

  /** Complete a step that is `pending`, with its result or with an error. */
  async complete(runId: string, handle: string, answer: { result?: unknown } | { error: string }): Promise<void> {
    await this.connect();
    await this.api.request("POST", `${pathOf(runId)}/handles/${encodeURIComponent(handle)}`, answer);
  }

  /**
   * Hear of what happens, after it is on disk: `run.completed`, `step.failed`, … or `*`; of schedules `dispatch`, `state_completed`,
   * `suspend`, … Returns the listener's id; the same id replaces, the same handler without an id is registered once. A listener for
   * `suspend` is first told what is undecided.
   */
  on<Kind extends string>(kind: Kind, handler: EventHandler<Kind>, id?: string): string {
    if (this.closed) throw new Error("the engine has been closed");
    return this.feed.on(kind, handler, id);
  }

  off(id: string): boolean {
    return this.feed.off(id);
  }

  /** The workflows that this engine was given. */
  registered(): WorkflowMetadata[] {
    return this.catalog.list();
  }

  /** End it: what runs may end for so long. The child, if there is one, has ended then; its temporary store is removed. */
  async close(options: { graceMs?: number } = {}): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.feed.close();
    await this.connections?.close(options.graceMs ?? CLOSE_GRACE_MS);
    await this.started?.catch(() => undefined);
    await this.child?.close();
  }
}

function pathOf(runId: string): string {
  return `api/v1/runs/${encodeURIComponent(runId)}`;
}

function started(answer: Record<string, unknown>): RunStarted {
  const { runId, status, validated } = answer as unknown as RunStarted;
  return { runId, status, ...(validated === undefined ? {} : { validated }) };
}

/** Has the run ended? */
export function isTerminal(status: string): boolean {
  return TERMINAL.includes(status);
}

/**
 * An engine with these workflows, and with those that were registered in this process. Without options it starts the program
 * `rival` as a child, on a temporary store.
 */
export function rival(...all: [RivalOptions, ...Workflow[]] | Workflow[]): Engine {
  const { options, catalog } = catalogOf(all);
  return new Engine(options, catalog);
}
