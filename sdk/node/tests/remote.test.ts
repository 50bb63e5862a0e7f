// remote.test.ts: workflows that are offered to a server elsewhere: over TCP, with a token, with and without TLS.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Server } from "./serving.js";

const ADMIN = "admin-token-0123456789a";
const WORKER = "worker-token-0123456789";
const at = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
let folder: string;
let tokens: string[];
let tls: string[];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "rival-remote-"));
  const [key, certificate, file] = ["key", "pem", "tokens"].map((name) => join(folder, name)) as [string, string, string];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    { stdio: "ignore" },
  );
  await writeFile(file, `worker ${WORKER}\nadmin ${ADMIN}\nviewer viewer-token-0123456789\n`, { mode: 0o600 });
  tokens = ["--token-file", file];
  tls = ["--tls-cert", certificate, "--tls-key", key];
});
after(() => rm(folder, { recursive: true }));

/** Run remote.ts against a server whose socket it cannot reach, as from another machine. */
async function remote(args: string[], workerToken: string): Promise<{ said: unknown; warned: string }> {
  const server = await Server.start({}, ["--workers", "127.0.0.1:0", ...tokens, ...args]);
  try {
    await rm(join(server.folder, "s.db.sock"));
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ["--import", at("./loader.js"), at("./remote.ts"), server.url, ADMIN, workerToken],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, "pem") } },
    );
    return { said: JSON.parse(stdout), warned: stderr };
  } finally {
    await server.stop();
  }
}

const DONE = { status: "completed", doubled: [0, 2, 4], again: 2, local: [false] };

test("steps run here for a server that is reached over TCP", async () => {
  assert.deepEqual(await remote([], WORKER), { said: DONE, warned: "" });
});

test("with TLS, whose certificate is verified", async () => {
  assert.deepEqual(await remote(tls, WORKER), { said: DONE, warned: "" });
});

test("a token that is not a worker's is refused in words", async () => {
  const { said } = await remote([], "viewer-token-0123456789");
  assert.deepEqual(said, { refused: "there is no such token of role worker" });
});
