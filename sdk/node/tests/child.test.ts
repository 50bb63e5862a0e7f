// child.test.ts: the engine as a child: found, started again, and never left behind.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { EngineChild, findProgram } from "../dist/engine/child.js";
import { rival } from "../dist/engine/index.js";

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 600, "waited in vain");
    await new Promise((done) => setTimeout(done, 50));
  }
}

test("the program is found by option, RIVAL_BIN and PATH, and missed in words", () => {
  const bin = process.env.RIVAL_BIN!;
  const path = process.env.PATH;
  try {
    assert.throws(() => findProgram("/nowhere/rival"), /there is no program '\/nowhere\/rival' \(bin\)/);
    process.env.RIVAL_BIN = "/nowhere/else";
    assert.throws(() => findProgram(), /\(RIVAL_BIN\)/);
    assert.equal(findProgram(bin).endsWith("/rival"), true);
    delete process.env.RIVAL_BIN;
    process.env.PATH = dirname(findProgram(bin));
    assert.equal(findProgram(), findProgram(bin));
    process.env.PATH = "/nowhere";
    assert.throws(() => findProgram(), /was not found: install it, name it with RIVAL_BIN/);
  } finally {
    process.env.RIVAL_BIN = bin;
    process.env.PATH = path;
  }
});

test("closing ends it and removes a temporary store", async () => {
  const engine = rival();
  assert.deepEqual((await engine.list()).runs, []);
  const child = (engine as unknown as { child: EngineChild }).child;
  const pid = child.pid!;
  assert.ok(existsSync(child.store));
  await engine.close();
  assert.equal(runs(pid), false);
  assert.equal(existsSync(dirname(child.store)), false);
});

test("an engine that dies is started again on its store", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rival-child-"));
  const engine = rival({ store: join(folder, "kept.db") });
  await engine.list();
  const child = (engine as unknown as { child: EngineChild }).child;
  const first = child.pid!;
  process.kill(first, "SIGKILL");
  await until(() => child.pid !== first);
  assert.deepEqual((await engine.list()).runs, []);
  assert.notEqual(child.pid, first);
  await engine.close();
  assert.ok(existsSync(join(folder, "kept.db")), "a store that was named stays");
  await rm(folder, { recursive: true });
});

test("an engine that cannot start says what it said", async () => {
  const engine = rival({ store: "/nowhere/at/all.db" });
  await assert.rejects(engine.list(), /the engine has ended \(exit code 1\).*all\.db/s);
  await engine.close();
});

for (const way of ["SIGKILL", "SIGTERM", "exit"])
  test(`no engine is left behind after ${way}`, async () => {
    const program = `
      import { rival } from ${JSON.stringify(fileURLToPath(new URL("../dist/engine/index.js", import.meta.url)))};
      const engine = rival();
      await engine.list();
      console.log(engine.child.pid);
      ${way === "exit" ? "process.exit(0)" : "setInterval(() => undefined, 1000)"};`;
    const node = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(node.stdout, "data")) as [Buffer];
    const pid = Number(line.toString());
    assert.ok(pid > 0);
    if (way !== "exit") node.kill(way as NodeJS.Signals);
    await until(() => !runs(pid));
  });
