/** workflow-registry.ts: `WorkflowRegistry`: workflows and their runs in one object. */
import { Engine, isTerminal, type RivalOptions, type RunSummary, type WorkflowInstance } from "./engine/engine.js";
import { Catalog, defaultRegistry, type WorkflowMetadata } from "./registry.js";
import type { Workflow } from "./define/definition.js";

const PAGE = 1000;
const ACTIVE = ["running", "suspended"]; // what a server can be asked for today

/**
 * Registers workflows and launches them; it also has those that were registered in this process (`.register()`, files). The engine
 * behind it starts with the first launch.
 */
export class WorkflowRegistry {
  private readonly catalog = new Catalog(defaultRegistry);
  private started: Engine | undefined;

  constructor(private readonly options: RivalOptions = {}) {}

  private get engine(): Engine {
    this.started ??= new Engine(this.options, this.catalog);
    return this.started;
  }

  /** Throws if the name is taken, or after the first launch: the engine has its workflows then. */
  register(workflow: Workflow): void {
    if (this.started !== undefined) throw new Error("register before the first launch: the engine has its workflows");
    this.catalog.register(workflow);
  }

  list(): WorkflowMetadata[] {
    return this.catalog.list();
  }

  /** Start a run. Bad input throws the `ZodError`. */
  async launch(workflow: string, input?: unknown): Promise<{ runId: string }> {
    const { runId } = await this.engine.run(workflow, input);
    return { runId };
  }

  getWorkflow(runId: string): Omit<WorkflowInstance, "run" | "workflow"> {
    const { engine } = this;
    return {
      runId,
      wait: async (options) => engine.wait((await engine.state(runId)).workflow, runId, options),
      cancel: () => engine.cancel(runId),
      getState: () => engine.state(runId),
    };
  }

  /** Runs that have not ended. */
  async getActiveRuns(workflow?: string): Promise<RunSummary[]> {
    const active: RunSummary[] = [];
    for (const status of ACTIVE as RunSummary["status"][]) {
      let cursor: string | null | undefined;
      do {
        const page = await this.engine.list({ status, limit: PAGE, ...(workflow === undefined ? {} : { workflow }), ...(cursor ? { cursor } : {}) });
        active.push(...page.runs.filter((run) => !isTerminal(run.status)));
        cursor = page.nextCursor;
      } while (cursor !== null);
    }
    return active;
  }

  cancel(runId: string): Promise<void> {
    return this.engine.cancel(runId);
  }

  async close(): Promise<void> {
    await this.started?.close();
  }
}
