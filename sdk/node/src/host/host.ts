/**
 * host.ts: the workflow files of one folder, loaded in a process of their own and offered to the engine that started it.
 *
 *   engine ──call load {files, parse?}──▶        ◀──hello, register {workflows, functions, problems}──        then as any worker
 *
 * A bad file is a problem in `register` and keeps no good one from being offered. With `parse` nothing of the files is run. The process ends
 * with its connection.
 */
import { readFile } from "node:fs/promises";
import { Socket } from "node:net";
import { transform } from "esbuild";
import { lowerWorkflow, type LoweredWorkflow } from "../define/lower.js";
import { WorkflowDefinitionError, WorkflowFilesError, type FileProblem } from "../errors.js";
import { stripOptions } from "../files/hooks.js";
import { loadFile } from "../files/load.js";
import { Catalog } from "../registry.js";
import type { WorkflowDefinition } from "../types.js";
import { FrameReader, type Frame } from "../wire/frames.js";
import { Connection, type Offer } from "../worker/connection.js";
import { hashOf, offersOf } from "../worker/offers.js";

const CREDITS = 100; // functions at once, as `rival()` has it

export async function serveFiles(fd: number): Promise<void> {
  const socket = new Socket({ fd, readable: true, writable: true });
  const { files, parse } = await told(socket);
  const loaded = parse ? { offers: [], functions: new Map(), problems: await parseAll(files) } : await loadAll(files);
  const connection = new Connection({
    address: () => Promise.resolve({ socket }),
    credits: CREDITS,
    name: "files",
    offers: loaded.offers,
    functions: loaded.functions,
    module: hashOf(loaded.offers),
    problems: loaded.problems,
  });
  try {
    await connection.open();
    await connection.over();
  } finally {
    // Timers and sockets that a file has left open are nobody's any more.
    process.exit(0);
  }
}

/** What the engine wants: its first frame. */
function told(socket: Socket): Promise<{ files: string[]; parse: boolean }> {
  return new Promise((resolve) => {
    const reader = new FrameReader((frame: Frame) => {
      socket.off("data", push);
      socket.pause();
      resolve({ files: frame.files as string[], parse: frame.parse === true });
    });
    const push = (chunk: Buffer): void => reader.push(chunk);
    socket.on("data", push);
    socket.on("close", () => process.exit(0));
  });
}

/** What is wrong with their syntax. */
async function parseAll(files: string[]): Promise<FileProblem[]> {
  const problems: FileProblem[] = [];
  for (const file of files) {
    try {
      await transform(await readFile(file, "utf8"), stripOptions(file));
    } catch (error) {
      const all = (error as { errors?: { text: string; location?: { line: number; column: number } | null }[] }).errors;
      if (all === undefined) problems.push({ file, message: String((error as Error).message) });
      for (const { text, location } of all ?? [])
        problems.push({ file, message: text, ...(location == null ? {} : { line: location.line, column: location.column + 1 }) });
    }
  }
  return problems;
}

interface Loaded {
  offers: Offer[];
  functions: Map<string, { fn: never }>;
  problems: FileProblem[];
}

async function loadAll(files: string[]): Promise<Loaded> {
  const catalog = new Catalog();
  const problems: FileProblem[] = [];
  const sources = new Map<WorkflowDefinition, string>();
  for (const file of files) {
    try {
      const loaded = await loadFile(file);
      if (loaded.workflows.length === 0 && loaded.functions.size === 0)
        problems.push({ file, message: "it exports neither 'steps' nor a workflow nor functions" });
      problems.push(...catalog.take(loaded));
      for (const workflow of loaded.workflows) sources.set(workflow, file);
    } catch (error) {
      if (!(error instanceof WorkflowFilesError)) throw error;
      for (const one of error.problems)
        if (!problems.some((other) => other.file === one.file && other.message === one.message)) problems.push(one);
    }
  }
  const good: { definition: WorkflowDefinition; lowered: LoweredWorkflow }[] = [];
  for (const definition of catalog.all()) {
    try {
      good.push({ definition, lowered: lowerWorkflow(definition) });
    } catch (error) {
      if (!(error instanceof WorkflowDefinitionError)) throw error;
      problems.push({ file: sources.get(definition) ?? "", message: error.message });
    }
  }
  const offers = offersOf(good).map((offer, i) => {
    const file = sources.get(good[i]!.definition);
    return file === undefined ? offer : { ...offer, file };
  });
  return {
    offers,
    functions: new Map([...catalog.functions].map(([name, fn]) => [name, { fn: fn as never }])),
    problems,
  };
}
