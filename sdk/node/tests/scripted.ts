// scripted.ts: an engine that says what a test tells it to, for what a real one does only when it is in trouble.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FrameReader, type Frame } from "../dist/wire/frames.js";

export class ScriptedEngine {
  private constructor(
    readonly path: string,
    private readonly folder: string,
    private readonly server: Server,
  ) {}
  private socket: Socket | undefined;
  private frames: Frame[] = [];
  private waiting: { type: string; resolve: (frame: Frame) => void }[] = [];

  /** At a Unix socket, or by TCP: then `url` is for lists of members. */
  static async start(by: "path" | "tcp" = "path"): Promise<ScriptedEngine> {
    const folder = await mkdtemp(join(tmpdir(), "rival-scripted-"));
    const path = join(folder, "s.sock");
    const server = createServer();
    const engine = new ScriptedEngine(path, folder, server);
    server.on("connection", (socket) => {
      engine.socket = socket;
      engine.frames = [];
      const reader = new FrameReader((frame) => engine.take(frame));
      socket.on("data", (chunk) => reader.push(chunk));
      socket.on("error", () => undefined);
    });
    if (by === "path") server.listen(path);
    else server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return engine;
  }

  get url(): string {
    return `tcp://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  private take(frame: Frame): void {
    const at = this.waiting.findIndex((waiter) => waiter.type === frame.type);
    if (at >= 0) this.waiting.splice(at, 1)[0]!.resolve(frame);
    else this.frames.push(frame);
  }

  /** The next frame of that type. */
  next(type: string): Promise<Frame> {
    const at = this.frames.findIndex((frame) => frame.type === type);
    if (at >= 0) return Promise.resolve(this.frames.splice(at, 1)[0]!);
    return new Promise((resolve) => this.waiting.push({ type, resolve }));
  }

  send(...frames: Frame[]): void {
    const bytes = frames.flatMap((frame) => {
      const text = Buffer.from(JSON.stringify(frame));
      const head = Buffer.alloc(4);
      head.writeUInt32BE(text.length);
      return [head, text];
    });
    this.socket!.write(Buffer.concat(bytes)); // several in one piece
  }

  /** Answer hello and register. */
  async greet(more: Record<string, unknown> = {}): Promise<Frame> {
    const hello = await this.next("hello");
    this.send({ type: "hello", protocol: 2, session: "s1", graceMs: 5000, heartbeatMs: 10000, ...more });
    const register = await this.next("register");
    this.send({ type: "result", id: register.id!, workflows: [] });
    return hello;
  }

  cut(): void {
    this.socket!.destroy();
  }

  async stop(): Promise<void> {
    this.socket?.destroy();
    this.server.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

let count = 0;

/** An `invoke` frame. */
export function invoke(fn: string, more: Record<string, unknown> = {}): Frame & { id: string } {
  const id = `k1.${++count}.1`;
  return {
    type: "invoke",
    id,
    function: fn,
    workflow: "w",
    version: "v",
    run: { runId: "r1", workflowName: "w", stepName: fn, path: fn, attempt: 1, executionId: "1.1", idempotencyKey: "k" },
    ...more,
  };
}
