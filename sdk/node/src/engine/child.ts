/**
 * child.ts: the engine as a child process: found, started, started again if it dies, and never left behind.
 *
 * Its standard input is a pipe from here and it ends when that closes (`--stop-with-stdin`), so it ends with this process, whatever
 * kills it. It has a process group of its own: Ctrl-C is ours, and we close it in order.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";

const RESTART_FIRST_MS = 100;
const RESTART_MOST_MS = 5000;
const STEADY_MS = 10_000; // an engine that has lived so long is started again at once
const START_MS = 30_000;
const KILL_MS = 15_000;
const TAIL_BYTES = 4000; // of what it said last, for the error

export interface ChildOptions {
  /** The program; default: RIVAL_BIN, PATH, or the platform's package. */
  bin?: string;
  /** Where the runs are kept: a file, or `postgres://…`; default: a temporary folder, removed at the end. */
  store?: string;
  /** What the engine logs on standard error: default nothing below errors. */
  logLevel?: "debug" | "info" | "warn" | "error";
}

/** Where the program is. */
export function findProgram(bin?: string): string {
  const said = bin ?? process.env.RIVAL_BIN;
  if (said !== undefined && said !== "") {
    if (!existsSync(said)) throw new Error(`there is no program '${said}' (${bin === undefined ? "RIVAL_BIN" : "bin"})`);
    return resolve(said);
  }
  try {
    const beside = createRequire(import.meta.url).resolve(`@rival/${process.platform}-${process.arch}/rival`);
    if (existsSync(beside)) return beside;
  } catch {
    // there is no package for this platform
  }
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const program = join(folder, "rival");
    // npm's own `rival` would be a script of this package: not the engine.
    if (folder !== "" && !folder.includes("node_modules") && existsSync(program)) return program;
  }
  throw new Error("the program 'rival' was not found: install it, name it with RIVAL_BIN, or give { bin } or { url }");
}

/** Engines of this process, so that none is left when it exits. */
const alive = new Set<EngineChild>();
function onExit(): void {
  for (const child of alive) child.abandon();
}

export class EngineChild {
  readonly token = randomBytes(24).toString("hex");
  readonly store: string;
  private readonly inDatabase: boolean;
  private readonly folder: string;
  private readonly program: string;
  private child: ChildProcess | undefined;
  private started: Promise<string> | undefined;
  private closing = false;
  private failures = 0;

  constructor(private readonly options: ChildOptions) {
    this.program = findProgram(options.bin);
    this.folder = mkdtempSync(join(tmpdir(), "rival-"));
    this.inDatabase = /^postgres(ql)?:\/\//.test(options.store ?? "");
    this.store = options.store === undefined ? join(this.folder, "rival.db") : this.inDatabase ? options.store : resolve(options.store);
    mkdirSync(join(this.folder, "none")); // `serve` takes the files of a folder: this one has none
    writeFileSync(join(this.folder, "tokens"), `admin ${this.token} sdk\n`, { mode: 0o600 });
    if (alive.size === 0) process.once("exit", onExit);
    alive.add(this);
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Its address by HTTP. Starts it, if it does not run. */
  url(): Promise<string> {
    this.started ??= this.start();
    return this.started;
  }

  /** The Unix socket beside its store; undefined: the store is no file, and the engine says where its socket is. */
  get socket(): string | undefined {
    return this.inDatabase ? undefined : `${this.store}.sock`;
  }

  private async start(): Promise<string> {
    if (this.closing) throw new Error("the engine has been closed");
    if (this.failures > 0)
      await new Promise((done) => setTimeout(done, Math.min(RESTART_FIRST_MS * 2 ** (this.failures - 1), RESTART_MOST_MS)));
    const child = spawn(
      this.program,
      [
        "serve",
        join(this.folder, "none"),
        ...["--store", this.store, "--listen", "127.0.0.1:0", "--token-file", join(this.folder, "tokens")],
        ...["--stop-with-stdin", "--grace", "1s", "--log-level", this.options.logLevel ?? "error"],
      ],
      { stdio: ["pipe", "pipe", "pipe"], detached: true },
    );
    this.child = child;
    let tail = "";
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text: string) => {
      tail = (tail + text).slice(-TAIL_BYTES);
      if (this.options.logLevel !== undefined) process.stderr.write(text);
    });
    child.stdin.on("error", () => undefined); // it has gone: its exit tells
    const began = Date.now();
    child.once("exit", () => {
      if (this.child !== child) return;
      this.child = undefined;
      this.started = undefined;
      this.failures = Date.now() - began > STEADY_MS ? 0 : this.failures + 1;
    });
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        child.kill("SIGKILL");
        reject(new Error(`the engine did not start within ${START_MS / 1000} s: ${tail}`));
      }, START_MS);
      let said = "";
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (text: string) => {
        said += text;
        const line = /^(\S+)\n/.exec(said)?.[1];
        if (line === undefined) return;
        clearTimeout(late);
        resolve(line);
      });
      child.once("error", (error) => {
        clearTimeout(late);
        reject(new Error(`the engine cannot be started: ${error.message}`));
      });
      child.once("exit", (code, signal) => {
        clearTimeout(late);
        reject(new Error(`the engine has ended (${signal ?? `exit code ${String(code)}`})${tail === "" ? "" : `: ${tail.trim()}`}`));
      });
    });
  }

  /** Let it end in order, and wait for that. */
  async close(): Promise<void> {
    this.closing = true;
    await this.started?.catch(() => undefined);
    const { child } = this;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise<void>((done) => child.once("exit", () => done()));
      const late = setTimeout(() => child.kill("SIGKILL"), KILL_MS);
      child.stdin?.end();
      await ended;
      clearTimeout(late);
    }
    this.forget();
  }

  /** This process ends now: nothing can be waited for. */
  abandon(): void {
    this.closing = true;
    // A temporary store has nothing that anybody will read again.
    this.child?.kill(this.options.store === undefined ? "SIGKILL" : "SIGTERM");
    this.forget();
  }

  private forget(): void {
    alive.delete(this);
    if (alive.size === 0) process.removeListener("exit", onExit);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
