/* fixture.ts: what every test has: a server of its own on a free port, with a store of its own, and a page
 * that fails the test when anything is written to the console as an error or a warning. */
import { test as base, expect, type APIRequestContext, type Page } from "@playwright/test";
import { AxeBuilder } from "@axe-core/playwright";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

const HERE = import.meta.dirname;
const RIVAL = process.env.RIVAL ?? path.join(HERE, "../../build/rival");

export class Server {
  url = "";
  private process: ChildProcess | null = null;

  constructor(
    readonly folder: string,
    readonly options: string[] = [],
  ) {}

  /** Starts, on the same port when it was up before. */
  async start(): Promise<void> {
    const port = this.url ? new URL(this.url).port : "0";
    const child = spawn(
      RIVAL,
      ["serve", path.join(HERE, "workflows"), "--listen", `127.0.0.1:${port}`, "--store", path.join(this.folder, "ui.db"), ...this.options],
      { stdio: ["ignore", "pipe", "pipe"], cwd: this.folder },
    );
    this.process = child;
    let said = "";
    this.url = await new Promise<string>((resolve, reject) => {
      for (const stream of [child.stdout!, child.stderr!])
        createInterface({ input: stream }).on("line", (line) => {
          said += `${line}\n`;
          const url = /https?:\/\/127\.0\.0\.1:\d+/.exec(line);
          if (url) resolve(url[0]);
        });
      child.once("exit", (code) => reject(new Error(`rival serve ended with ${code}:\n${said}`)));
      child.once("error", reject);
    });
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.process;
    this.process = null;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }
}

interface Fixtures {
  serverOptions: string[];
  server: Server;
  api: Api;
  /** Messages on the console that this test expects. */
  expected: RegExp[];
}

/** The server as a program sees it: to set the scene, and to look behind the page. */
export class Api {
  constructor(
    private request: APIRequestContext,
    private server: Server,
  ) {}
  async get(path: string): Promise<unknown> {
    const response = await this.request.get(`${this.server.url}/api/v1${path}`);
    return response.json();
  }
  async post(path: string, data?: unknown): Promise<unknown> {
    const response = await this.request.post(`${this.server.url}/api/v1${path}`, { data });
    expect(response.ok(), await response.text()).toBe(true);
    return response.json();
  }
  async launch(workflow: string, input?: unknown, runId?: string): Promise<string> {
    const run = (await this.post(`/workflows/${workflow}/runs`, { input, runId })) as { runId: string };
    return run.runId;
  }
  async status(runId: string): Promise<string> {
    return ((await this.get(`/runs/${runId}?results=0`)) as { status: string }).status;
  }
}

export const test = base.extend<Fixtures>({
  serverOptions: [[], { option: true }],
  expected: [[], { option: true }],
  server: async ({ serverOptions }, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "rival-ui-"));
    const server = new Server(folder, serverOptions);
    try {
      await server.start();
      await use(server);
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  baseURL: async ({ server }, use) => use(server.url),
  api: async ({ request, server }, use) => use(new Api(request, server)),
  page: async ({ page, expected }, use) => {
    const said: string[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) said.push(`${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => said.push(`uncaught: ${error.message}`));
    await use(page);
    expect(
      said.filter((line) => !expected.some((each) => each.test(line))),
      "nothing on the console",
    ).toEqual([]);
  },
});

/** The browser itself says this about every refused request; no page can prevent it. */
export const refused = (status: number) => new RegExp(`the server responded with a status of ${status}`);

/** Nothing that axe knows to be wrong. */
export async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map((v) => `${v.impact} ${v.id}: ${v.help}; ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`)).toEqual([]);
}

/** Nothing sticks out to the right. */
export async function expectNoSideScroll(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over, "pixels beyond the right edge").toBeLessThanOrEqual(0);
}

export { expect };
