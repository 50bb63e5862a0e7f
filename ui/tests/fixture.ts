/* fixture.ts: what every test has: a server on a free port, and a page that fails the test when anything is
 * written to the console as an error or a warning.
 *
 * The tests of a worker share a server and its store, so a test looks for its own runs and never counts all of
 * them. One that needs an empty store, other options or other workflows has a server of its own:
 * `test.use({ serverOptions: […] })`, empty if need be. */
import { test as base, expect, type APIRequestContext, type Page } from "@playwright/test";
import { AxeBuilder } from "@axe-core/playwright";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const HERE = import.meta.dirname;
const RIVAL = process.env.RIVAL ?? path.join(HERE, "../../build/rival");

export class Server {
  url = "";
  private process: ChildProcess | null = null;

  constructor(
    readonly folder: string,
    readonly options: string[] = [],
    /** a folder beside this file */
    public workflows = "workflows",
  ) {}

  get store(): string {
    return path.join(this.folder, "ui.db");
  }

  /** Starts, on the same port when it was up before. */
  async start(): Promise<void> {
    const port = this.url ? new URL(this.url).port : "0";
    const child = spawn(
      RIVAL,
      [
        "serve",
        path.resolve(HERE, this.workflows),
        "--listen",
        `127.0.0.1:${port}`,
        "--store",
        this.store,
        ...this.options,
      ],
      { stdio: ["ignore", "pipe", "pipe"], cwd: this.folder, env: { ...process.env, XDG_CACHE_HOME: this.folder } },
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

async function withServer(
  use: (server: Server) => Promise<void>,
  options?: string[],
  workflows?: string,
): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), "rival-ui-"));
  const server = new Server(folder, options, workflows);
  try {
    await server.start();
    await use(server);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Another command of the program, on the server's store while the server is down. */
export async function rival(...args: string[]): Promise<void> {
  await promisify(execFile)(RIVAL, args);
}

interface WorkerFixtures {
  shared: Server;
}

interface Fixtures {
  /** of a server of the test's own; undefined: the worker's will do */
  serverOptions: string[] | undefined;
  workflows: string | undefined;
  server: Server;
  api: Api;
  /** Messages on the console that this test expects. */
  expected: RegExp | undefined;
}

/** The server as a program sees it: to set the scene, and to look behind the page. */
export class Api {
  constructor(
    private request: APIRequestContext,
    private server: Server,
  ) {}
  /** As it is on the wire, to the last digit. */
  async text(path: string): Promise<string> {
    const response = await this.request.get(`${this.server.url}/api/v1${path}`);
    return response.text();
  }
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
  /** What a node of the top level returned. */
  async result(runId: string, alias: string): Promise<unknown> {
    const run = (await this.get(`/runs/${runId}`)) as { results: Record<string, { result: unknown }> };
    return run.results[alias]?.result;
  }
  async status(runId: string): Promise<string> {
    return ((await this.get(`/runs/${runId}?results=0`)) as { status: string }).status;
  }
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  serverOptions: [undefined, { option: true }],
  workflows: [undefined, { option: true }],
  expected: [undefined, { option: true }],
  shared: [async ({}, use) => withServer(use), { scope: "worker" }],
  server: async ({ shared, serverOptions, workflows }, use) =>
    serverOptions || workflows ? withServer(use, serverOptions, workflows) : use(shared),
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
      said.filter((line) => !expected?.test(line)),
      "nothing on the console",
    ).toEqual([]);
  },
});

/** The browser itself says this about every request that is refused or cut off; no page can prevent it. */
export const disconnected =
  /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/;
export const either = (...all: RegExp[]) => new RegExp(all.map((each) => each.source).join("|"));
export const refused = (status: number) => new RegExp(`the server responded with a status of ${status}`);

/** Nothing that axe knows to be wrong. Its legacy mode leaves out what only pages with frames need. */
export async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .setLegacyMode(true)
    .options({ resultTypes: ["violations"] })
    .analyze();
  expect(
    violations.map((v) => `${v.impact} ${v.id}: ${v.help}; ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`),
  ).toEqual([]);
}

/** Nothing sticks out to the right. */
export async function expectNoSideScroll(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over, "pixels beyond the right edge").toBeLessThanOrEqual(0);
}

/** Two members, as a server with PostgreSQL answers; the real ones are tested without a browser (tests/e2e/members.sh). */
export async function withMembers(page: Page): Promise<void> {
  const now = Date.now();
  const member = (process: string, runs: number, left: number, more = {}) => ({
    id: `${process}-id`,
    process,
    version: "0.1.0",
    runs,
    since: now - 3_600_000,
    leaseUntil: now + left,
    ...more,
  });
  await page.route("**/api/v1/members", (route) =>
    route.fulfill({
      json: { members: [member("71 on b", 5, -1000), member("4242 on a", 15, 3_600_000, { self: true })] },
    }),
  );
}

export { expect };
