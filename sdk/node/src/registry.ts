/** registry.ts: which workflows there are. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { WorkflowDefinitionError, WorkflowFilesError } from "./errors.js";
import { loadFile, loadFolder, resolveReferences, type LoadedFile } from "./files/load.js";
import { lowerWorkflow, type LoweredWorkflow } from "./define/lower.js";
import { definitionOf, isWorkflow, type Workflow } from "./define/definition.js";
import { isDefinition } from "./define/normalize.js";
import type { InputSchema, NodeDefinition, StepFunction, WorkflowDefinition } from "./types.js";

export interface WorkflowMetadata {
  name: string;
  description?: string;
  /** As it was given: Zod, or JSON Schema. */
  inputSchema?: InputSchema;
  /** Its own nodes, at the top level. */
  stepCount: number;
  /** The engine's name for this definition: known once an engine has taken it. */
  version?: string;
  /** The file that it came from. */
  source?: string;
}

/** Workflows by name. Every name, and every actor's name, is taken once. */
export class Catalog {
  private readonly workflows = new Map<string, WorkflowDefinition>();
  private readonly owners = new Map<string, { workflow: string; fn: unknown }>();
  private readonly exported = new Map<string, StepFunction>();
  private readonly pending = new Set<Promise<unknown>>();
  /** As an engine has called them. */
  readonly versions = new Map<string, string>();

  /** `below`: a catalog whose workflows this one has as well, also those that are registered there later. */
  constructor(private readonly below?: Catalog) {}

  /** Add a workflow. Throws if its name is taken, or it is not a good one. One that is in the catalog below may be added here. */
  register(workflow: Workflow): WorkflowDefinition {
    const definition = definitionOf(workflow, "register");
    const other = this.workflows.get(definition.name) ?? this.below?.get(definition.name);
    if (other !== undefined && (other !== definition || this.workflows.has(definition.name))) {
      const where = other.source === undefined ? "" : ` (${other.source})`;
      throw refusal(definition, `a workflow '${definition.name}' is already registered${where}`);
    }
    const { functions } = lowerWorkflow(definition);
    for (const [name, { fn }] of functions) {
      const owner = this.owner(name);
      if (owner !== undefined && owner.fn !== fn)
        throw refusal(definition, `Duplicate actor name '${name}': workflow '${owner.workflow}' has it`);
    }
    for (const [name, { fn }] of functions) this.owners.set(name, { workflow: definition.name, fn });
    this.workflows.set(definition.name, definition);
    return definition;
  }

  private owner(name: string): { workflow: string; fn: unknown } | undefined {
    return this.owners.get(name) ?? this.below?.owner(name);
  }

  get(name: string): WorkflowDefinition | undefined {
    return this.workflows.get(name) ?? this.below?.get(name);
  }

  all(): WorkflowDefinition[] {
    return [...new Set([...(this.below?.all() ?? []), ...this.workflows.values()])];
  }

  /** Functions that files export: by name, for `call`. */
  get functions(): ReadonlyMap<string, StepFunction> {
    return this.below === undefined ? this.exported : new Map([...this.below.functions, ...this.exported]);
  }

  list(): WorkflowMetadata[] {
    return this.all().map((workflow) => ({
      name: workflow.name,
      ...(workflow.description === undefined ? {} : { description: workflow.description }),
      ...(workflow.inputSchema === undefined ? {} : { inputSchema: workflow.inputSchema }),
      stepCount: workflow.steps.length,
      ...(this.versions.has(workflow.name) ? { version: this.versions.get(workflow.name)! } : {}),
      ...(workflow.source === undefined ? {} : { source: workflow.source }),
    }));
  }

  /** Register what a file defines. */
  registerFile(path: string): Promise<WorkflowDefinition[]> {
    return this.track(async () => {
      const before = new Set(this.all());
      const loaded = await loadFile(path);
      const own = loaded.workflows.length === 0 ? this.all().filter((definition) => !before.has(definition)) : [];
      if (own.length > 0) return own; // it exports none, and has registered them itself
      if (loaded.workflows.length === 0)
        throw new WorkflowFilesError([{ file: loaded.file, message: "defines no workflow: it exports no 'steps'" }]);
      const problems = this.take(loaded);
      if (problems.length > 0) throw new WorkflowFilesError(problems);
      return loaded.workflows;
    });
  }

  /** Register every workflow file below a folder; afterwards throws, if there were bad ones, with all of them. */
  registerFolder(folder: string): Promise<WorkflowDefinition[]> {
    return this.track(async () => {
      if (!(await stat(folder)).isDirectory())
        throw new WorkflowFilesError([{ file: resolve(folder), message: "is no folder" }]);
      const { files, problems } = await loadFolder(folder);
      for (const loaded of files) problems.push(...this.take(loaded));
      if (problems.length > 0) throw new WorkflowFilesError(problems);
      return files.flatMap((loaded) => loaded.workflows);
    });
  }

  /** Register what was loaded; returns what is wrong with it. */
  take(loaded: LoadedFile): { file: string; message: string }[] {
    const problems: { file: string; message: string }[] = [];
    for (const workflow of loaded.workflows) {
      if (this.get(workflow.name) === loaded.written.get(workflow)) continue; // the file has registered it itself
      try {
        this.register(workflow);
      } catch (error) {
        if (!(error instanceof WorkflowDefinitionError)) throw error;
        problems.push({ file: loaded.file, message: error.violations.map((v) => v.message).join("; ") });
      }
    }
    for (const [name, fn] of loaded.functions) if (!this.exported.has(name)) this.exported.set(name, fn);
    return problems;
  }

  private track<T>(work: () => Promise<T>): Promise<T> {
    const promise = work();
    const settled: Promise<void> = promise.then(
      () => void this.pending.delete(settled),
      () => void this.pending.delete(settled), // told by the promise that the caller has
    );
    this.pending.add(settled);
    return promise;
  }

  /** Until no file is being loaded any more. */
  async settled(): Promise<void> {
    await this.below?.settled();
    while (this.pending.size > 0) await Promise.all(this.pending);
  }

  /** For the engine: every workflow, with the files it nests in their place. Those that are nested by name come first. */
  async lower(): Promise<{ definition: WorkflowDefinition; lowered: LoweredWorkflow }[]> {
    await this.settled();
    const ready = new Map<string, { definition: WorkflowDefinition; lowered: LoweredWorkflow }>();
    const visit = async (definition: WorkflowDefinition, above: ReadonlySet<string>): Promise<void> => {
      if (ready.has(definition.name) || above.has(definition.name)) return;
      const resolved = await resolveReferences(definition, process.cwd());
      const inside = new Set([...above, definition.name]);
      for (const name of namesIn(resolved.steps)) {
        const other = this.get(name);
        if (other !== undefined) await visit(other, inside);
      }
      ready.set(definition.name, { definition: resolved, lowered: lowerWorkflow(resolved) });
    };
    for (const definition of this.all()) await visit(definition, new Set());
    return [...ready.values()];
  }
}

/** The workflows that are nested by name. */
function namesIn(nodes: NodeDefinition[]): string[] {
  const names: string[] = [];
  const look = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(look);
    else if (isDefinition(value)) look(value.steps);
    else if (typeof value === "object" && value !== null) {
      const node = value as Record<string, unknown>;
      if (typeof node.target === "string") names.push(node.target);
      else if (node.type !== undefined || Array.isArray(node.nodes))
        for (const key of ["workflow", "run", "body", "steps", "then", "else", "nodes"]) look(node[key]);
    }
  };
  look(nodes);
  return names;
}

function refusal(definition: WorkflowDefinition, message: string): WorkflowDefinitionError {
  return new WorkflowDefinitionError(definition.name, [{ path: "", message }]);
}

/** Where `.register()`, `registerWorkflowFile` and `registerWorkflowsFromDirectory` put workflows. */
export const defaultRegistry = new Catalog();

/** What `rival(…)` and `testEngine(…)` are given: options, if there are any, and workflows. */
export function catalogOf<Options extends object>(all: [Options, ...Workflow[]] | Workflow[]): { options: Options; catalog: Catalog } {
  const [first, ...rest] = all;
  const hasOptions = first !== undefined && !isWorkflow(first);
  const catalog = new Catalog(defaultRegistry);
  for (const workflow of (hasOptions ? rest : all) as Workflow[]) catalog.register(workflow);
  return { options: (hasOptions ? first : {}) as Options, catalog };
}

/** Register the workflow of a file; a relative path is relative to the working folder. */
export function registerWorkflowFile(path: string): Promise<WorkflowDefinition[]> {
  return defaultRegistry.registerFile(path);
}

/** Register every workflow file below a folder. Good ones are registered even if others are bad. */
export function registerWorkflowsFromDirectory(folder: string): Promise<WorkflowDefinition[]> {
  return defaultRegistry.registerFolder(folder);
}
