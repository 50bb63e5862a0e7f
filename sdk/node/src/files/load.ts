/** load.ts: workflow files: found, imported, and made into definitions. */
import { readdir, stat } from "node:fs/promises";
import { register } from "node:module";
import { basename, dirname, extname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brand } from "../define/brand.js";
import { defineWorkflow } from "../define/builder.js";
import type { WorkflowOptions } from "../define/definition.js";
import { isBuilder, isDefinition, isReference } from "../define/normalize.js";
import { isFile } from "../define/steps.js";
import { WorkflowFilesError, type FileProblem } from "../errors.js";
import type { BodyDefinition, NodeDefinition, StepFunction, WorkflowDefinition } from "../types.js";

const ENDINGS = [".ts", ".mts", ".js", ".mjs"];
const PACKAGE = fileURLToPath(new URL("../", import.meta.url)); // our own code: dist/
const MAX_DEPTH = 100; // of workflows in workflows, as in the engine
const FILE_EXPORTS = ["steps", "input", "name", "description", "onError", "results", "needs"];

/** What a file offers. */
export interface LoadedFile {
  file: string;
  workflows: WorkflowDefinition[];
  /** Each of them as the file has it, before the files that it nests were put in their place. */
  written: Map<WorkflowDefinition, WorkflowDefinition>;
  /** Its exported functions, by their own names: for `call` in other files. */
  functions: Map<string, StepFunction>;
}

let hooked = false;

/** Teach this process TypeScript, once. Bun knows it. */
export function hook(): void {
  if (hooked || "Bun" in globalThis) return;
  hooked = true;
  process.setSourceMapsEnabled(true);
  register("./hooks.js", import.meta.url);
}

/** Import a file and take what it defines. Nested files are loaded and put in their place. */
export async function loadFile(path: string, loading: readonly string[] = []): Promise<LoadedFile> {
  const file = resolve(path);
  if (loading.includes(file))
    throw problem(file, `a workflow that contains itself: ${[...loading, file].map((f) => basename(f)).join(" -> ")}`);
  if (loading.length >= MAX_DEPTH) throw problem(file, `workflow files are nested more than ${MAX_DEPTH} deep`);
  hook();
  let module: Record<string, unknown>;
  try {
    module = (await import(await freshUrl(file))) as Record<string, unknown>;
  } catch (error) {
    throw importProblem(file, error);
  }
  const functions = new Map<string, StepFunction>();
  for (const [name, value] of Object.entries(module))
    if (typeof value === "function" && name !== "default" && name !== "onError" && !isBuilder(value))
      functions.set(name, value as StepFunction);
  try {
    const written = new Map<WorkflowDefinition, WorkflowDefinition>();
    for (const definition of definitionsOf(module, file))
      written.set(await resolveReferences(definition, dirname(file), [...loading, file]), definition);
    return { file, workflows: [...written.keys()], written, functions };
  } catch (error) {
    if (error instanceof WorkflowFilesError) throw error;
    throw problem(file, messageOf(error));
  }
}

/** The address of a file. When it has changed since, another one: Node keeps modules by address. */
async function freshUrl(file: string): Promise<string> {
  const url = pathToFileURL(file);
  const { mtimeMs } = await stat(file);
  const first = versions.get(file) ?? mtimeMs;
  versions.set(file, first);
  if (mtimeMs !== first) url.searchParams.set("changed", String(mtimeMs));
  return url.href;
}
const versions = new Map<string, number>();

function definitionsOf(module: Record<string, unknown>, file: string): WorkflowDefinition[] {
  if (module.steps !== undefined) {
    if (!Array.isArray(module.steps)) throw new TypeError("'steps' must be a list");
    const name = module.name ?? basename(file, extname(file));
    const options: Record<string, unknown> = { source: file };
    for (const key of FILE_EXPORTS)
      if (key !== "name" && module[key] !== undefined) options[key] = module[key];
    if (options.onError !== undefined && isBuilder(options.onError)) throw new TypeError("'onError' must be a function");
    return [defineWorkflow(name as string, options as unknown as WorkflowOptions)];
  }
  const found = new Set<WorkflowDefinition>();
  for (const value of Object.values(module)) {
    if (isBuilder(value)) found.add(value.build());
    else if (isDefinition(value)) found.add(value);
  }
  return [...found];
}

/** The same workflow with the files that it nests in their place. */
export async function resolveReferences(
  definition: WorkflowDefinition,
  folder: string,
  loading: readonly string[] = [],
): Promise<WorkflowDefinition> {
  const seen = new Map<WorkflowDefinition, WorkflowDefinition>();

  const workflow = async (inner: WorkflowDefinition): Promise<WorkflowDefinition> => {
    const done = seen.get(inner);
    if (done !== undefined) return done;
    const copy = brand("definition", { ...inner });
    seen.set(inner, copy);
    copy.steps = await list(inner.steps);
    return copy;
  };

  const target = async (value: unknown): Promise<unknown> => {
    if (isDefinition(value)) return workflow(value);
    const { target: said, base } = value as { target: string | WorkflowDefinition; base?: string };
    if (typeof said !== "string") return workflow(said);
    if (!isFile(said) || !ENDINGS.includes(extname(said))) return value; // by name, or a file that the engine knows
    const path = isAbsolute(said) ? said : join(base ?? folder, said);
    const { workflows } = await loadFile(path, loading);
    if (workflows.length !== 1)
      throw problem(path, workflows.length === 0 ? "defines no workflow: it exports no 'steps'" : "defines several workflows: which one?");
    return workflows[0];
  };

  const list = (nodes: NodeDefinition[]): Promise<NodeDefinition[]> => Promise.all(nodes.map(node));

  const body = async (value: BodyDefinition): Promise<BodyDefinition> => {
    if (Array.isArray(value)) return list(value);
    if (isDefinition(value) || isReference(value)) return (await target(value)) as BodyDefinition;
    return node(value as NodeDefinition);
  };

  const node = async (value: NodeDefinition): Promise<NodeDefinition> => {
    switch (value.type) {
      case undefined:
        return value;
      case "forEach":
        return { ...value, run: await body(value.run) };
      case "loop":
        return { ...value, body: await body(value.body) };
      case "branch":
        return {
          ...value,
          then: await list(value.then),
          ...(value.else === undefined ? {} : { else: await list(value.else) }),
        };
      case "concurrent":
        return {
          ...value,
          steps: await Promise.all(
            value.steps.map(async (child) =>
              "nodes" in child ? { alias: child.alias, nodes: await list(child.nodes) } : node(child),
            ),
          ),
        };
      case "workflow":
        return { ...value, workflow: (await target(value.workflow)) as WorkflowDefinition };
    }
  };

  return workflow(definition);
}

/** The workflow files below a folder, sorted. Hidden files, packages, declarations and tests are left out. */
export async function findFiles(folder: string): Promise<string[]> {
  const found: string[] = [];
  const walk = async (path: string): Promise<void> => {
    const entries = await readdir(path, { withFileTypes: true });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
      const below = join(path, entry.name);
      if (entry.isDirectory()) await walk(below);
      else if (entry.isFile() && ENDINGS.includes(extname(entry.name)) && !/\.(?:d|test|spec)\.m?[tj]s$/.test(entry.name))
        found.push(below);
    }
  };
  await walk(resolve(folder));
  return found;
}

/** Load every workflow file below a folder. A bad one keeps no good one from being loaded. */
export async function loadFolder(folder: string): Promise<{ files: LoadedFile[]; problems: FileProblem[] }> {
  const files: LoadedFile[] = [];
  const problems: FileProblem[] = [];
  for (const path of await findFiles(folder)) {
    try {
      files.push(await loadFile(path));
    } catch (error) {
      if (!(error instanceof WorkflowFilesError)) throw error;
      for (const one of error.problems)
        if (!problems.some((other) => other.file === one.file && other.message === one.message)) problems.push(one);
    }
  }
  return { files, problems };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function problem(file: string, message: string, line?: number): WorkflowFilesError {
  return new WorkflowFilesError([{ file, message, ...(line === undefined ? {} : { line }) }]);
}

/** What went wrong when a file was imported, and in which line of which file. */
function importProblem(file: string, error: unknown): WorkflowFilesError {
  if ((error as NodeJS.ErrnoException).code === "ENOENT" && (error as NodeJS.ErrnoException).path === file)
    return problem(file, "there is no such file");
  const syntax = (error as { errors?: { text: string; location?: { file: string; line: number } }[] }).errors?.[0];
  if (syntax?.location != null) return problem(syntax.location.file, syntax.text, syntax.location.line);
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  for (const at of stack.matchAll(/(?:file:\/\/)?(\/[^\s():?]+\.m?[tj]sx?)(?:\?[^\s():]*)?:(\d+)/g))
    if (!at[1]!.includes("/node_modules/") && !at[1]!.startsWith(PACKAGE))
      return problem(at[1]!, messageOf(error), Number(at[2]));
  return problem(file, messageOf(error));
}
