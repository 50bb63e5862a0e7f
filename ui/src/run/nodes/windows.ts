/* windows.ts: the nodes of a run, as much of them as is looked at.
 *
 * A window is a page of the children of one node. Whoever shows nodes says which windows it wants; they
 * are fetched, kept, and kept fresh: an event is folded into the nodes that are here at once, and the
 * windows it may have changed are read again a moment later, those that are wanted, once for however
 * many events. Listeners are told once for a frame. Work is in proportion to what happened and what is
 * shown, never to the size of the run. */
import type { FeedEvent, NodeStatus, RunNode, RunNodes } from "../../api/types";
import { byPath, fold, parentsOf } from "./fold";

export const PAGE = 100;
const REFRESH_MS = 700;
const IN_FLIGHT = 6;
/** Windows that nobody wants any more are kept up to so many, for those who come back. */
const KEPT = 200;

export interface WindowKey {
  parent: string;
  page: number;
}

interface Window extends WindowKey {
  data?: RunNodes;
  error?: unknown;
  stale: boolean;
  /** while it is read: what happened meanwhile, which the answer may not have */
  meanwhile?: FeedEvent[];
}

export interface WindowsOptions {
  /** `status`: only the children in it */
  load: (parent: string, offset: number, limit: number, status?: NodeStatus) => Promise<RunNodes>;
  /** for tests: instead of the browser's frame and clock */
  frame?: (callback: () => void) => void;
  after?: (ms: number, callback: () => void) => void;
}

const nameOf = (parent: string, page: number) => `${page} ${parent}`;

export class NodeWindows {
  private windows = new Map<string, Window>();
  private wants = new Map<object, WindowKey[]>();
  private statuses = new Map<string, NodeStatus>();
  private listeners = new Set<() => void>();
  private waiting: FeedEvent[] = [];
  private told = false;
  private refreshing = false;
  private busy = 0;
  private frame: (callback: () => void) => void;
  private after: (ms: number, callback: () => void) => void;
  /** Changes whenever anything that can be read here does. */
  version = 0;
  /** The server's clock minus ours, as far as its answers tell. */
  clockOffset = 0;

  constructor(private options: WindowsOptions) {
    this.frame = options.frame ?? ((callback) => void requestAnimationFrame(callback));
    this.after = options.after ?? ((ms, callback) => void setTimeout(callback, ms));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  getVersion = (): number => this.version;

  window(parent: string, page = 0): RunNodes | undefined {
    return this.windows.get(nameOf(parent, page))?.data;
  }
  error(parent: string, page = 0): unknown {
    return this.windows.get(nameOf(parent, page))?.error;
  }
  /** A child by its place; undefined: not here (yet). */
  at(parent: string, index: number): RunNode | undefined {
    return this.window(parent, Math.floor(index / PAGE))?.nodes[index % PAGE];
  }
  total(parent: string): number | undefined {
    return this.window(parent)?.total;
  }

  /** Which children of this node are listed; undefined: all. */
  statusOf(parent: string): NodeStatus | undefined {
    return this.statuses.get(parent);
  }
  /** From now on only those of one status are. */
  list(parent: string, status: NodeStatus | undefined): void {
    if (status === undefined) this.statuses.delete(parent);
    else this.statuses.set(parent, status);
    for (const [name, window] of this.windows) if (window.parent === parent) this.windows.delete(name);
    this.fetch();
    this.tell();
  }

  /** These are what `who` looks at from now on; what is not here is fetched. */
  want(who: object, keys: WindowKey[]): void {
    if (keys.length === 0) this.wants.delete(who);
    else this.wants.set(who, keys);
    this.fetch();
    if (this.windows.size > KEPT) this.trim();
  }

  /** Something happened. Folded in with the next frame, and read again soon. */
  events(events: FeedEvent[]): void {
    const of = events.filter((event) => event.kind !== "log");
    if (of.length === 0) return;
    for (const event of of) this.waiting.push(event);
    for (const window of this.windows.values())
      for (const event of window.meanwhile ? of : []) window.meanwhile!.push(event);
    this.tell();
    this.refreshSoon();
  }

  /** Nothing that is here can be trusted: a stream began anew. */
  invalidate(): void {
    for (const window of this.windows.values()) window.stale = true;
    this.fetch();
  }

  private wanted(): Map<string, WindowKey> {
    const all = new Map<string, WindowKey>();
    for (const keys of this.wants.values()) for (const key of keys) all.set(nameOf(key.parent, key.page), key);
    return all;
  }

  private trim(): void {
    const wanted = this.wanted();
    for (const [name, window] of this.windows) {
      if (this.windows.size <= KEPT) return;
      if (!wanted.has(name) && !window.meanwhile) this.windows.delete(name);
    }
  }

  private tell(): void {
    if (this.told) return;
    this.told = true;
    this.frame(() => {
      this.told = false;
      this.foldWaiting();
      this.version++;
      for (const listener of this.listeners) listener();
    });
  }

  private foldWaiting(): void {
    if (this.waiting.length === 0) return;
    const paths = byPath(this.waiting);
    const whole = this.waiting.some((event) => event.kind.startsWith("run."));
    this.waiting = [];
    const parents = parentsOf(paths.keys());
    for (const window of this.windows.values()) {
      if (!whole && !parents.has(window.parent)) continue;
      window.stale = true;
      if (window.data) window.data = foldInto(window.data, paths);
    }
  }

  private refreshSoon(): void {
    if (this.refreshing) return;
    this.refreshing = true;
    this.after(REFRESH_MS, () => {
      this.refreshing = false;
      this.foldWaiting();
      this.fetch();
    });
  }

  private fetch(): void {
    for (const [name, key] of this.wanted()) {
      if (this.busy >= IN_FLIGHT) return; // each that ends calls again
      let window = this.windows.get(name);
      if (!window) {
        window = { ...key, stale: true };
        this.windows.set(name, window);
      }
      if (window.stale && !window.meanwhile) void this.read(window);
    }
  }

  private async read(window: Window): Promise<void> {
    this.busy++;
    window.stale = false;
    const meanwhile: FeedEvent[] = (window.meanwhile = []);
    try {
      const data = await this.options.load(window.parent, window.page * PAGE, PAGE, this.statuses.get(window.parent));
      this.learnClock(data);
      window.data = meanwhile.length > 0 ? foldInto(data, byPath(meanwhile)) : data;
      window.error = undefined;
    } catch (error) {
      window.error = error; // what was here stays; the next event, or stream, asks again
    }
    window.meanwhile = undefined;
    this.busy--;
    this.tell();
    this.fetch();
  }

  private learnClock(data: RunNodes): void {
    const running = data.nodes.find(
      (node) => node.completedAt === undefined && node.startedAt !== undefined && node.duration !== undefined,
    );
    if (running) this.clockOffset = running.startedAt! + running.duration! - Date.now();
  }
}

function foldInto(data: RunNodes, paths: Map<string, FeedEvent[]>): RunNodes {
  let changed = false;
  const nodes = data.nodes.map((node) => {
    const events = paths.get(node.path);
    if (!events) return node;
    const after = events.reduce(fold, node);
    changed ||= after !== node;
    return after;
  });
  return changed ? { ...data, nodes } : data;
}
