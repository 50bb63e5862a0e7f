// files.test.ts: workflow files are found, loaded, and their mistakes told with file and line.
import assert from "node:assert/strict";
import { cp, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { compileWorkflow, registerWorkflowFile, registerWorkflowsFromDirectory, WorkflowFilesError } from "rival";
import { loadFile } from "../dist/files/load.js";
import { Catalog, defaultRegistry } from "../dist/registry.js";

const fixtures = fileURLToPath(new URL("./fixtures/", import.meta.url));

async function problemsOf(work: Promise<unknown>): Promise<{ file: string; line?: number; message: string }[]> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof WorkflowFilesError, String(error));
    return error.problems.map((p) => ({ ...p, file: basename(p.file) }));
  }
  assert.fail("nothing was wrong");
}

test("a folder is registered, with nested files in their place and modules of steps left out", async () => {
  const registry = new Catalog();
  const workflows = await registry.registerFolder(join(fixtures, "flows"));
  assert.deepEqual(workflows.map((w) => w.name).sort(), ["built", "payment-flow", "thrower", "tree-processing"]);
  const tree = registry.get("tree-processing")!;
  assert.equal(tree.description, "From a tree to lumber");
  assert.deepEqual(tree.steps.map((step) => step.alias), ["findTree", "payment", "processTree"]);
  const { plan } = compileWorkflow(tree);
  assert.deepEqual((plan[1] as { plan: unknown[] }).plan, [
    { type: "step", id: "s1", alias: "charge", actorRef: "payment-flow_charge", config: { maxAttempts: 2 } },
  ]);
  assert.deepEqual([...registry.functions.keys()].sort(), ["charge", "explode", "findTree"]);
});

test("stacks show the line of the TypeScript file", async () => {
  const { functions } = await loadFile(join(fixtures, "flows/thrower.ts"));
  assert.throws(
    () => functions.get("explode")!(undefined) as unknown,
    (error: Error) => /thrower\.ts:9:9/.test(error.stack ?? ""),
  );
});

test("every bad file is told with line and reason, and good ones are registered all the same", async () => {
  const registry = new Catalog();
  const problems = await problemsOf(registry.registerFolder(join(fixtures, "bad")));
  const by = (file: string) => problems.filter((p) => p.file === file);
  assert.deepEqual(by("syntax.ts").map((p) => p.line), [1]);
  assert.match(by("syntax.ts")[0]!.message, /Expected "]"/);
  assert.match(by("missing.ts")[0]!.message, /nowhere-at-all/);
  assert.deepEqual(by("throws.ts"), [{ file: "throws.ts", line: 2, message: "at import" }]);
  assert.match(by("config.ts")[0]!.message, /invalid timeout -1/);
  assert.match(by("ring-a.ts")[0]!.message, /contains itself: ring-a.ts -> ring-b.ts -> ring-a.ts/);
  assert.deepEqual(registry.all().map((w) => w.name), ["good"]);
});

test("a file is registered by itself, once", async () => {
  await registerWorkflowFile(join(fixtures, "flows/payment.ts"));
  assert.ok(defaultRegistry.get("payment-flow"));
  const again = await problemsOf(registerWorkflowsFromDirectory(join(fixtures, "flows")));
  assert.match(again[0]!.message, /'payment-flow' is already registered/);
  assert.ok(defaultRegistry.get("tree-processing"), "the others of the folder are registered");
  assert.match((await problemsOf(registerWorkflowFile("/nowhere/x.ts")))[0]!.message, /there is no such file/);
  assert.match(
    (await problemsOf(registerWorkflowFile(join(fixtures, "flows/steps/tree-steps.ts"))))[0]!.message,
    /defines no workflow/,
  );
});

test("a file without packages beside it finds rival and zod, and a changed file is loaded anew", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rival-files-"));
  try {
    await cp(join(fixtures, "flows"), folder, { recursive: true });
    const file = join(folder, "tree-processing.ts");
    assert.equal((await loadFile(file)).workflows[0]!.steps.length, 3);
    await writeFile(file, 'import { z } from "zod";\nexport const input = z.object({});\nexport const steps = [() => 1];\n');
    await utimes(file, new Date(), new Date(Date.now() + 5000));
    assert.equal((await loadFile(file)).workflows[0]!.steps.length, 1);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a file that registers its workflow itself may be registered, whether it exports it or not", async () => {
  for (const name of ["shown", "hidden"]) {
    const [definition] = await registerWorkflowFile(join(fixtures, `own/${name}.ts`));
    assert.equal(definition?.name, name);
    assert.equal(defaultRegistry.get(name)?.name, name);
  }
});
