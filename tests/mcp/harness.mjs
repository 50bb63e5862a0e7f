// harness.mjs: what the tests of the MCP server share: servers of their own, and a client that is as bare as can be.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync, chmodSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const rival = process.env.RIVAL;
export const flows = process.env.FLOWS;
export const MODERN = "2026-07-28";
export const TASKS = "io.modelcontextprotocol/tasks";

export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "rival-mcp-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const env = { ...process.env, RIVAL_URL: "", RIVAL_TOKEN: "", RIVAL_STORE: "" };

/** `rival serve` on a store; its address is known when this returns. */
export async function serve(t, store, { args = [], listen = "127.0.0.1:0", dir = flows } = {}) {
  const child = spawn(rival, ["serve", dir, "--store", store, "--listen", listen, "--log-level", "error", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
  const gone = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const [url] = await Promise.race([once(lines, "line"), gone.then(([code]) => Promise.reject(new Error(`serve: ${code}`)))]);
  const stop = async (signal = "SIGTERM") => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await gone;
  };
  t.after(() => stop("SIGKILL"));
  return { url, mcp: `${url}/mcp`, pid: child.pid, stop };
}

export function tokens(dir, text) {
  const path = join(dir, "tokens");
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  return path;
}

const meta = (capabilities) => ({
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "bare", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": capabilities,
});

let number = 0;
/** A request of revision 2026-07-28, as text. */
export function modern(method, params = {}, capabilities = {}) {
  return { jsonrpc: "2.0", id: ++number, method, params: { ...params, _meta: { ...meta(capabilities), ...params._meta } } };
}

/** Send it by HTTP. All messages that came, the answer last. */
export async function post(url, message, headers = {}) {
  const name = message.params?.name ?? message.params?.uri ?? message.params?.taskId;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MODERN,
      "mcp-method": message.method,
      ...(name !== undefined && { "mcp-name": name }),
      ...headers,
    },
    body: JSON.stringify(message),
  });
  const text = await response.text();
  const stream = response.headers.get("content-type")?.includes("event-stream");
  const messages = stream
    ? text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)))
    : text === "" ? [] : [JSON.parse(text)];
  return { status: response.status, response, messages, answer: messages.at(-1) };
}

/** The same, and its result. */
export async function ask(url, method, params, capabilities, headers) {
  const { answer } = await post(url, modern(method, params, capabilities), headers);
  if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error);
  return answer.result;
}

/** `rival mcp`, spoken to line by line. */
export function pipe(t, args) {
  const child = spawn(rival, ["mcp", ...args], { stdio: ["pipe", "pipe", "inherit"], env });
  const gone = once(child, "exit");
  const waiting = new Map();
  const messages = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    messages.push(message);
    waiting.get(message.id)?.(message);
  });
  child.stdin.on("error", () => {});
  const answer = (id) => new Promise((resolve) => waiting.set(id, resolve));
  const stop = async (signal) => {
    if (signal) child.kill(signal);
    else child.stdin.end();
    return (await gone)[0];
  };
  t.after(() => { child.kill("SIGKILL"); return gone; });
  return {
    messages,
    stop,
    raw: (text) => child.stdin.write(text),
    answer,
    send: (message) => {
      const promise = answer(message.id);
      child.stdin.write(JSON.stringify(message) + "\n");
      return promise;
    },
    async ask(method, params, capabilities) {
      const { result, error } = await this.send(modern(method, params, capabilities));
      if (error) throw Object.assign(new Error(error.message), error);
      return result;
    },
  };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Until it is true; the test's own time-out ends it otherwise. */
export async function until(what) {
  for (;;) {
    const value = await what();
    if (value) return value;
    await sleep(50);
  }
}
