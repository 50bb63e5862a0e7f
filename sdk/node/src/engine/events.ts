/** events.ts: what happens, as it is committed: one stream of server-sent events for all listeners of an engine. */
import type { HttpApi } from "./http.js";
import { isLifecycle, lifecycleOf, suspensionOf, type LifecycleEvent, type LifecycleType, type Suspension } from "./lifecycle.js";

const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 5000;
/** How many suspensions a list has of each run: RV_LIST_SUSPENSIONS. */
const LISTED_SUSPENSIONS = 100;

/** One committed change. `kind` says which: `run.completed`, `step.started`, … */
export interface RivalEvent {
  seq: number;
  index: number;
  kind: string;
  runId: string;
  workflow: string;
  path?: string;
  at: number;
  [key: string]: unknown;
}

export type EventHandler<Kind extends string = string> = (event: Kind extends LifecycleType ? LifecycleEvent : RivalEvent) => unknown;
type AnyHandler = (event: never) => unknown;

/** Names that listeners may use for a kind. */
const ALIASES: Readonly<Record<string, string>> = {
  "workflow:started": "run.started",
  "workflow:completed": "run.completed",
  "workflow:failed": "run.failed",
  "workflow:cancelled": "run.cancelled",
};

export class EventFeed {
  private readonly listeners = new Map<string, { kind: string; handler: AnyHandler }>();
  private next = 0;
  private position: string | undefined;
  /** Does somebody want log lines? */
  private logs = false;
  private stopped: AbortController | undefined;
  private opened: Promise<void> | undefined;

  constructor(
    private readonly api: HttpApi,
    private readonly onHandlerError: (error: unknown) => void,
  ) {}

  /** Resolves when the stream is there: what happens afterwards is heard. At once, if nobody listens. */
  async ready(): Promise<void> {
    let seen: Promise<void> | undefined;
    while (seen !== this.opened) {
      seen = this.opened; // another one, if it was begun anew meanwhile
      await seen;
    }
  }

  on(kind: string, handler: AnyHandler, id?: string): string {
    const real = Object.hasOwn(ALIASES, kind) ? ALIASES[kind]! : kind;
    if (real !== "*" && !real.includes(".") && !isLifecycle(real) && real !== "log") throw new TypeError(`there is no event '${kind}'`);
    if (id === undefined)
      for (const [known, listener] of this.listeners)
        if (listener.kind === real && listener.handler === handler) return known;
    const name = id ?? `listener-${++this.next}`;
    this.listeners.set(name, { kind: real, handler });
    if (!this.logs && (real === "log" || real === "*")) {
      this.logs = true; // from where it is, with log lines
      this.stopped?.abort();
      this.stopped = undefined;
    }
    if (this.stopped === undefined) this.begin();
    if (real === "suspend") void this.recall(name);
    return name;
  }

  off(id: string): boolean {
    const had = this.listeners.delete(id);
    if (this.listeners.size === 0) this.close();
    return had;
  }

  close(): void {
    this.listeners.clear();
    this.stopped?.abort();
    this.stopped = undefined;
    this.opened = undefined;
    this.logs = false;
  }

  private begin(): void {
    const stopped = new AbortController();
    this.stopped = stopped;
    this.opened = new Promise((resolve) => {
      stopped.signal.addEventListener("abort", () => resolve()); // nobody waits for what does not come
      void this.follow(stopped.signal, resolve);
    });
  }

  /** Follow until it is stopped, over lost connections. */
  private async follow(signal: AbortSignal, opened: () => void): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.stream(signal, () => {
          failures = 0;
          opened();
        });
      } catch {
        if (signal.aborted) return;
      }
      const wait = Math.min(RETRY_FIRST_MS * 2 ** failures++, RETRY_MOST_MS);
      await new Promise((done) => setTimeout(done, wait).unref());
    }
  }

  private async stream(signal: AbortSignal, opened: () => void): Promise<void> {
    const headers: Record<string, string> = this.position === undefined ? {} : { "last-event-id": this.position };
    const response = await this.api.fetch("GET", `api/v1/events?logs=${this.logs ? 1 : 0}`, undefined, signal, headers);
    if (response.status === 410) this.position = undefined; // retention was quicker: from now on
    if (!response.ok || response.body === null) throw new Error(`the server answered ${response.status}`);
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop()!;
      for (const block of blocks) this.block(block, opened);
    }
  }

  private block(block: string, opened: () => void): void {
    let data: string | undefined;
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) {
        this.position = line.slice(4);
        opened();
      } else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (data === undefined) return;
    const event = JSON.parse(data) as RivalEvent;
    this.tell(event, (kind) => kind === event.kind || kind === "*");
    for (const life of lifecycleOf(event)) this.tell(life, (kind) => kind === life.type);
  }

  private tell(event: RivalEvent | LifecycleEvent, wants: (kind: string) => boolean): void {
    for (const [id, { kind, handler }] of [...this.listeners]) if (wants(kind) && this.listeners.has(id)) this.call(handler, event);
  }

  /** One that fails is told, and ignored; whether it is so at once or by its promise. */
  private call(handler: AnyHandler, event: RivalEvent | LifecycleEvent): void {
    try {
      const returned: unknown = handler(event as never);
      if (returned instanceof Promise) returned.catch(this.onHandlerError);
    } catch (error) {
      this.onHandlerError(error);
    }
  }

  /** All of them: a list of runs has no more than the oldest hundred of each. */
  private async suspensionsOf(run: { runId: string; suspensions?: Suspension[] }): Promise<Suspension[]> {
    if ((run.suspensions ?? []).length < LISTED_SUSPENSIONS) return run.suspensions ?? [];
    const whole = (await this.api.request("GET", `api/v1/runs/${encodeURIComponent(run.runId)}`)) as {
      suspensions?: Suspension[];
    };
    return whole.suspensions ?? [];
  }

  /** Tell one that has come what is undecided by now, in whatever process it came up. */
  private async recall(id: string): Promise<void> {
    try {
      await this.ready();
      for (let cursor: string | null = ""; cursor !== null; ) {
        const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
        const page = (await this.api.request("GET", `api/v1/runs?status=suspended&limit=100${query}`)) as {
          runs: { runId: string; workflow: string; suspensions?: Suspension[] }[];
          nextCursor: string | null;
        };
        for (const run of page.runs)
          for (const one of await this.suspensionsOf(run)) {
            const listener = this.listeners.get(id);
            if (listener?.kind !== "suspend") return;
            this.call(listener.handler, suspensionOf(run, one));
          }
        cursor = page.nextCursor;
      }
    } catch (error) {
      if (this.listeners.has(id)) this.onHandlerError(error);
    }
  }
}
