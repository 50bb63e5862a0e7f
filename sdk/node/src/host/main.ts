/**
 * main.ts: what `rival serve`, `exec`, `run`, `check` and `plan` start for workflow files in TypeScript and JavaScript. Not for people:
 * descriptor 3 is a socket to the engine (docs/worker-protocol.md, "Hosts of files").
 *
 * Nothing is imported here that an older Node.js would not know: it is to say so, not to break.
 */
export {};

const NEEDED = [20, 6] as const;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  const { writeSync } = await import("node:fs");
  const message = `workflow files in TypeScript need Node.js ${NEEDED.join(".")} or newer, and this is ${process.versions.node}`;
  const json = Buffer.from(JSON.stringify({ type: "error", message }));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(json.length);
  writeSync(3, Buffer.concat([head, json]));
  process.exit(1);
}
const { serveFiles } = await import("./host.js");
await serveFiles(3);
