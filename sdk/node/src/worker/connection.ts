/**
 * connection.ts: a worker's connection to an engine: docs/worker-protocol.md.
 *
 *   idle ──open()──▶ connecting ──hello, register──▶ ready ──lost──▶ waiting ──▶ connecting …
 *                        └── refused: failed for good ──▶ closed ◀── close() from any state
 *
 * A lost connection is made again by itself. What runs meanwhile goes on; answers are kept until the engine has taken them and are
 * sent again on the next connection. If the engine does not know the session any more, they are dropped and what runs is told to stop:
 * the engine attempts those steps again.
 */
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { OfferedFunction } from "../define/lower.js";
import type { FileProblem } from "../errors.js";
import { FrameReader, FrameWriter, type Frame } from "../wire/frames.js";
import { Invocation, type Fetched } from "./invocation.js";
import { unwatchRejections, watchRejections } from "./unhandled.js";
import { Kept } from "./values.js";

const PROTOCOL = 2;
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 5000;
const HELLO_MS = 10_000;
const HOST_HELLO_MS = 600_000;
/** Loss is noticed after so many heartbeats of silence. */
const SILENT_BEATS = 3;
/** Refusals that pass: the engine is ending, or is busy. */
const PASSING = [-7, -8];
const MAX_WAITING_BYTES = 256 * 1024 * 1024; // as the engine: whoever does not read that much is lost

export interface Address {
  /** A socket that is connected already: when it is lost, that is the end … */
  socket?: Socket;
  /** … or a Unix socket … */
  path?: string;
  /** … or a host. */
  host?: string;
  port?: number;
  tls?: boolean;
  token?: string;
}

/** A workflow as it is offered. */
export interface Offer {
  plan: Record<string, unknown>;
  functions: Map<string, OfferedFunction>;
  /** The file that it came from, if the engine is to know. */
  file?: string;
  /** Judges an input: what the run gets, or what is wrong with it. */
  validate?: (input: unknown) => Promise<{ input: unknown } | { violations: { path: string; message: string }[] }>;
}

/** A member of the engine's store, and where workers reach it. */
export interface Member {
  id: number;
  workers: string;
}

export interface ConnectionOptions {
  /** Where to: asked anew each time, since an engine that was started again may be elsewhere. */
  address: () => Promise<Address>;
  credits: number;
  name?: string;
  offers: Offer[];
  /** Functions by their own names. */
  functions: ReadonlyMap<string, OfferedFunction>;
  /** A hash of the code: 16 hex digits. */
  module?: string;
  /** Of a host of files: what is wrong with them. It offers what it has without being asked, and only once. */
  problems?: FileProblem[];
  /** The engine has taken what is offered, under these versions. */
  onTaken?: (workflows: { name: string; version: string }[]) => void;
  onReady?: () => void;
  onLost?: (reason: string) => void;
  /** The members of the engine's store, and which of them the engine is: now, and when they change. */
  onMembers?: (self: number, members: Member[]) => void;
}

/** The engine refused something: `code` is one of `enum rv_err`. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  constructor(
    message: string,
    readonly code: number,
    readonly violations?: { path: string; message: string }[],
  ) {
    super(message);
  }
}

/** The connection ended before the answer came: it is not known whether what was asked for was done. */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

interface Asked {
  resolve: (frame: Frame) => void;
  reject: (error: Error) => void;
}

type State = "idle" | "connecting" | "ready" | "waiting" | "closed";

export class Connection {
  private state: State = "idle";
  private socket: Socket | undefined;
  private writer: FrameWriter | undefined;
  private readonly kept = new Kept();
  private session: string | undefined;
  private hello: ((frame: Frame) => void) | undefined;
  private readonly running = new Map<string, Invocation>();
  /** Answers that the engine has not taken yet. */
  private readonly untaken = new Map<string, string>();
  private readonly calls = new Map<string, Asked>();
  private readonly gets = new Map<number, { resolve: (fetched: Fetched) => void; reject: (error: Error) => void }>();
  private readonly functions = new Map<string, OfferedFunction>();
  private readonly judges = new Map<string, NonNullable<Offer["validate"]>>();
  private nextCall = 0;
  private nextGet = 0;
  private failures = 0;
  private heard = 0;
  private beat: NodeJS.Timeout | undefined;
  private retry: NodeJS.Timeout | undefined;
  private drained: (() => void) | undefined;
  private waiters: { resolve: () => void; reject: (error: Error) => void }[] = [];
  /** Why it has ended for good. */
  private ended: Error | undefined;

  constructor(private readonly options: ConnectionOptions) {
    this.credits = options.credits;
    for (const offer of options.offers) {
      for (const [name, fn] of offer.functions) this.functions.set(name, fn);
      if (offer.validate !== undefined) this.judges.set(offer.plan.name as string, offer.validate);
    }
    for (const [name, fn] of options.functions) if (!this.functions.has(name)) this.functions.set(name, fn);
  }

  /** Connect, and stay connected. Resolves when the engine has taken what is offered. */
  open(): Promise<void> {
    if (this.state === "idle") {
      watchRejections();
      void this.connect();
    }
    return this.ready();
  }

  /** Until there is a connection. Rejects when there will be none. */
  ready(): Promise<void> {
    if (this.state === "ready") return Promise.resolve();
    if (this.ended !== undefined) return Promise.reject(this.ended);
    return new Promise((resolve, reject) => this.waiters.push({ resolve, reject }));
  }

  /** Until it has ended for good. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      if (this.closed()) resolve();
      else this.ending.push(resolve);
    });
  }
  private readonly ending: (() => void)[] = [];

  /** How many functions the engine may have here at once, from now on. */
  setCredits(credits: number): void {
    if (this.credits === credits) return;
    this.credits = credits;
    if (this.state === "ready") this.send({ type: "credits", credits });
  }
  private credits: number;

  get isReady(): boolean {
    return this.state === "ready";
  }

  /** How many functions run now. */
  get busy(): number {
    return this.running.size;
  }

  /**
   * Ask the engine for something. A connection that is lost before the answer rejects, unless the question is `safe` to ask
   * twice: then it is asked again.
   */
  async call(method: string, members: Record<string, unknown>, safe: boolean): Promise<Frame> {
    for (;;) {
      await this.ready();
      try {
        return await this.ask("call", { method, ...members });
      } catch (error) {
        if (!safe || !(error instanceof ConnectionLostError) || this.ended !== undefined) throw error;
      }
    }
  }

  /** End in good order: take no more work, let what runs end for so long, tell the rest to stop. */
  async close(graceMs: number): Promise<void> {
    if (this.state === "ready" && this.running.size > 0) {
      this.send({ type: "credits", credits: 0 });
      await this.drain(graceMs);
      for (const invocation of this.running.values()) invocation.cancel();
      if (this.running.size > 0) await this.drain(Math.min(graceMs, 1000));
    }
    if (this.state === "ready") {
      this.send({ type: "bye" });
      this.writer?.flush();
    }
    this.end(new Error("the engine has been closed"));
  }

  private drain(ms: number): Promise<void> {
    if (this.running.size === 0 || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      function done(): void {
        clearTimeout(timer);
        resolve();
      }
      this.drained = done;
    });
  }

  /** For good. */
  private end(reason: Error): void {
    if (this.state === "closed") return;
    if (this.state !== "idle") unwatchRejections();
    this.state = "closed";
    this.ended = reason;
    clearTimeout(this.retry);
    this.disconnect(reason);
    for (const invocation of this.running.values()) invocation.cancel();
    this.running.clear();
    this.untaken.clear();
    for (const waiter of this.waiters.splice(0)) waiter.reject(reason);
    for (const resolve of this.ending.splice(0)) resolve();
  }

  // --- connecting -----------------------------------------------------------------------------------------------

  private async connect(): Promise<void> {
    this.state = "connecting";
    try {
      const address = await this.options.address();
      if (this.closed()) return;
      const socket = await dial(address);
      if (this.closed()) {
        socket.destroy();
        return;
      }
      await this.begin(socket, address.token);
    } catch (error) {
      if (error instanceof RefusedError && !PASSING.includes(error.code)) this.end(error);
      else this.lost(error instanceof Error ? error.message : String(error));
    }
  }

  private closed(): boolean {
    return this.state === "closed";
  }

  private async begin(socket: Socket, token: string | undefined): Promise<void> {
    this.socket = socket;
    socket.setNoDelay(true);
    const reader = new FrameReader((frame) => this.take(frame));
    const writer = new FrameWriter((bytes) => {
      socket.write(bytes);
      if (socket.writableLength > MAX_WAITING_BYTES) socket.destroy(new Error("the engine does not read"));
    });
    this.writer = writer;
    this.heard = Date.now();
    socket.on("data", (chunk) => {
      this.heard = Date.now();
      try {
        reader.push(chunk);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.resume(); // one that was given to us is paused
    let reason = "the engine has hung up";
    socket.on("error", (error) => (reason = error.message));
    socket.on("close", () => {
      if (this.socket === socket) this.lost(reason);
    });

    const known = this.session;
    const greeting = new Promise<Frame>((resolve, reject) => {
      // Who started us answers when it has read what we offer, or ends us.
      const patience = this.options.problems === undefined ? HELLO_MS : HOST_HELLO_MS;
      const late = setTimeout(() => socket.destroy(new Error("the engine does not answer")), patience);
      this.hello = (frame) => {
        clearTimeout(late);
        // Now, not when the promise is taken up: an `invoke` may be in the same bytes, and is of the new session.
        if (frame.type === "hello" && frame.resumed !== true) this.forgetSession();
        resolve(frame);
      };
      socket.on("close", () => {
        clearTimeout(late);
        reject(new Error(reason));
      });
    });
    const { credits } = this;
    this.send({
      type: "hello",
      protocol: PROTOCOL,
      role: "worker",
      credits,
      pid: process.pid,
      ...(this.options.onMembers === undefined ? {} : { follows: true }),
      ...(this.options.name === undefined ? {} : { name: this.options.name }),
      ...(token === undefined ? {} : { token }),
      ...(known === undefined ? {} : { session: known, has: [...this.running.keys(), ...this.untaken.keys()] }),
    });
    if (this.options.problems !== undefined) this.send({ type: "register", ...this.offer(), problems: this.options.problems });
    const answer = await greeting;
    if (answer.type === "error") throw new RefusedError(String(answer.message), Number(answer.code));
    this.session = answer.session as string;
    this.members({ ...answer, members: answer.members ?? [] }); // without any, it does not share its store now
    this.watch(socket, Number(answer.heartbeatMs ?? 10_000));
    if (this.options.problems === undefined) {
      const { workflows } = await this.ask("register", this.offer());
      this.options.onTaken?.((workflows ?? []) as { name: string; version: string }[]);
    }
    for (const json of this.untaken.values()) this.writer.send(json);
    this.failures = 0;
    this.state = "ready";
    if (this.credits !== credits) this.send({ type: "credits", credits: this.credits });
    for (const waiter of this.waiters.splice(0)) waiter.resolve();
    this.options.onReady?.();
  }

  /** The engine does not know what ran for it: it attempts that again. */
  private forgetSession(): void {
    for (const invocation of this.running.values()) invocation.cancel();
    this.running.clear();
    this.untaken.clear();
  }

  private offer(): Record<string, unknown> {
    return {
      ...(this.options.module === undefined ? {} : { module: this.options.module }),
      sees: ["input", "steps", "last", "item"],
      workflows: this.options.offers.map((offer) => ({
        plan: offer.plan,
        functions: [...offer.functions.keys()],
        ...(offer.file === undefined ? {} : { file: offer.file }),
        ...(offer.validate === undefined ? {} : { validates: true }),
      })),
      functions: [...this.options.functions.keys()],
    };
  }

  private watch(socket: Socket, beatMs: number): void {
    clearInterval(this.beat);
    this.beat = setInterval(() => {
      const silent = Date.now() - this.heard;
      if (silent > beatMs * SILENT_BEATS) socket.destroy(new Error("the engine is silent"));
      else if (silent >= beatMs) this.send({ type: "ping" });
    }, beatMs);
    this.beat.unref();
  }

  /** The connection is gone: leave everything as it is, and try again. */
  private lost(reason: string): void {
    if (this.state === "closed" || this.state === "waiting") return;
    const wasReady = this.state === "ready";
    this.state = "waiting";
    this.disconnect(new ConnectionLostError(`the connection to the engine was lost: ${reason}`));
    if (wasReady) this.options.onLost?.(reason);
    if (this.options.problems !== undefined) {
      this.end(new ConnectionLostError(`the engine has gone: ${reason}`));
      return;
    }
    const wait = Math.min(RETRY_FIRST_MS * 2 ** this.failures++, RETRY_MOST_MS) * (0.5 + Math.random() / 2);
    this.retry = setTimeout(() => void this.connect(), wait);
  }

  private disconnect(why: Error): void {
    clearInterval(this.beat);
    const { socket } = this;
    this.socket = undefined;
    this.writer = undefined;
    if (this.state === "closed") socket?.end();
    else socket?.destroy();
    this.kept.forget();
    for (const asked of this.calls.values()) asked.reject(why);
    this.calls.clear();
    for (const get of this.gets.values()) get.reject(why);
    this.gets.clear();
  }

  // --- frames ---------------------------------------------------------------------------------------------------

  private send(frame: Frame): void {
    this.writer?.send(JSON.stringify(frame));
  }

  private ask(type: string, members: Record<string, unknown>): Promise<Frame> {
    const id = `c${++this.nextCall}`;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.send({ type, id, ...members });
    });
  }

  private take(frame: Frame): void {
    if (this.hello !== undefined) {
      const greet = this.hello;
      this.hello = undefined;
      greet(frame);
      return;
    }
    switch (frame.type) {
      case "invoke":
        this.invoke(frame);
        return;
      case "entry":
        this.kept.add(frame);
        return;
      case "value":
        this.value(frame);
        return;
      case "taken":
        for (const id of frame.ids as string[]) this.untaken.delete(id);
        return;
      case "cancel":
        this.running.get(frame.id!)?.cancel();
        return;
      case "forget":
        this.kept.forget();
        return;
      case "result":
      case "error":
        this.answered(frame);
        return;
      case "validate":
        void this.judge(frame);
        return;
      case "members":
        this.members(frame);
        return;
      case "ping":
        this.send({ type: "pong" });
        return;
      case "pong":
      case "begun":
        return;
      case "bye":
        this.socket?.destroy();
        return;
      default:
        throw new Error(`the engine said '${frame.type}', which this version does not know`);
    }
  }

  private members(frame: Frame): void {
    if (Array.isArray(frame.members)) this.options.onMembers?.(Number(frame.member ?? 0), frame.members as Member[]);
  }

  private answered(frame: Frame): void {
    const asked = this.calls.get(frame.id ?? "");
    if (frame.id !== undefined) this.calls.delete(frame.id);
    if (frame.type === "result") {
      asked?.resolve(frame);
      return;
    }
    const error = new RefusedError(
      String(frame.message),
      Number(frame.code),
      frame.violations as { path: string; message: string }[] | undefined,
    );
    if (asked !== undefined) asked.reject(error);
    else if (frame.id === undefined) this.socket?.destroy(error);
  }

  private value(frame: Frame): void {
    const found = this.kept.value(frame);
    const get = frame.seq === undefined ? undefined : this.gets.get(frame.seq as number);
    if (get === undefined) return; // put into its slot, for an `invoke` that follows
    this.gets.delete(frame.seq as number);
    get.resolve({ found, frame });
  }

  private invoke(frame: Frame): void {
    const id = frame.id!;
    const offered = this.functions.get(frame.function as string);
    if (offered === undefined) {
      this.finish(id, JSON.stringify({ type: "error", id, error: { message: `there is no function '${String(frame.function)}' here` } }));
      return;
    }
    const invocation = new Invocation(frame, this.kept, offered, this);
    this.running.set(id, invocation);
    invocation.start((json) => {
      if (this.running.get(id) !== invocation) return; // the session was lost: nobody waits for it
      this.running.delete(id);
      this.finish(id, json);
      if (this.running.size === 0) this.drained?.();
    });
  }

  private finish(id: string, json: string): void {
    this.untaken.set(id, json);
    this.writer?.send(json);
  }

  private async judge(frame: Frame): Promise<void> {
    const { id, workflow, input } = frame;
    const validate = this.judges.get(workflow as string);
    try {
      const verdict = validate === undefined ? { input } : await validate(input);
      this.send("violations" in verdict ? { type: "violations", id, violations: verdict.violations } : { type: "valid", id, input: verdict.input });
    } catch (error) {
      this.send({ type: "violations", id, violations: [{ path: "", message: `the schema cannot be asked: ${String(error)}` }] });
    }
  }

  // --- for invocations ------------------------------------------------------------------------------------------

  /** @internal */
  readonly sendText = (json: string): void => this.writer?.send(json);

  /** @internal */
  async get(id: string, part: string, of?: { entry?: number; alias: string }): Promise<Fetched> {
    let which: { entry?: number; alias?: string } = of?.entry === undefined ? { alias: of?.alias } : { entry: of.entry };
    for (;;) {
      const seq = ++this.nextGet;
      try {
        return await new Promise<Fetched>((resolve, reject) => {
          this.gets.set(seq, { resolve, reject });
          this.send({ type: "get", id, part, ...which, seq });
        });
      } catch (error) {
        // The connection was lost: the same question again on the next one, where entries have other numbers.
        await this.ready();
        if (!this.running.has(id)) throw error;
        if (of !== undefined) which = { alias: of.alias };
      }
    }
  }
}

/** A connected socket. */
function dial(address: Address): Promise<Socket> {
  if (address.socket !== undefined) return Promise.resolve(address.socket);
  return new Promise((resolve, reject) => {
    const socket =
      address.path !== undefined
        ? connectPlain({ path: address.path })
        : address.tls === true
          ? connectTls({ host: address.host, port: address.port!, ...(isIP(address.host!) === 0 ? { servername: address.host } : {}) })
          : connectPlain({ host: address.host, port: address.port! });
    socket.once(address.tls === true && address.path === undefined ? "secureConnect" : "connect", () => {
      socket.removeListener("error", reject);
      resolve(socket);
    });
    socket.once("error", reject);
  });
}
