// serving.ts: a real server for a test, on a store and a port of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Server {
  private constructor(
    readonly url: string,
    readonly folder: string,
    readonly process: ChildProcess,
  ) {}

  static async start(files: Record<string, string>, args: string[] = []): Promise<Server> {
    const folder = await mkdtemp(join(tmpdir(), "rival-server-"));
    await mkdir(join(folder, "flows"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, "flows", name), text);
    const program = process.env.RIVAL_BIN!;
    const child = spawn(
      program,
      ["serve", join(folder, "flows"), "--store", join(folder, "s.db"), "--listen", "127.0.0.1:0", "--stop-with-stdin", "--log-level", "warn", ...args],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    return new Server(line.toString().trim(), folder, child);
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null) {
      this.process.stdin?.end();
      await once(this.process, "exit");
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}
