/**
 * values.ts: what the engine has sent, kept as it believes us to keep it: slots and entries.
 *
 * An entry is a node that has ended; it points to the one before it, so a scope is a chain, newest first. Values are shared by all
 * invocations that see them and therefore frozen, when somebody first looks.
 */
import { inspect } from "node:util";
import type { LastStep, NodeError, StepEntries, StepEntry, StepState, StepStatus } from "../types.js";
import type { Frame } from "../wire/frames.js";

/** A value with everything in it made read-only. Iterative: depth is the user's. */
export function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const open: object[] = [value];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    Object.freeze(one);
    for (const part of Object.values(one) as unknown[])
      if (typeof part === "object" && part !== null && !Object.isFrozen(part)) open.push(part);
  }
  return value;
}

const EMPTY: StepState = Object.freeze({});

/** A node that has ended, as later steps see it. */
export class Entry {
  /** The nearest entry whose result did not come along, this one included. */
  readonly longs: Entry | undefined;
  private value: unknown;
  private view: StepEntry | undefined;

  constructor(
    readonly number: number,
    readonly alias: string,
    readonly before: Entry | undefined,
    private readonly status: StepStatus,
    private readonly state: StepState | undefined,
    private readonly error: NodeError | undefined,
    value: unknown,
    absent: boolean,
  ) {
    this.value = value;
    this.here = !absent;
    this.longs = absent ? this : before?.longs;
  }

  /** Is its result here? */
  here: boolean;

  /** Its result was long, and has been fetched. */
  fill(value: unknown): void {
    this.value = value;
    this.here = true;
  }

  /** `steps.<alias>` */
  get shown(): StepEntry {
    this.view ??= freeze({
      result: this.value,
      state: this.state ?? EMPTY,
      status: this.status,
      ...(this.error === undefined ? {} : { error: this.error }),
    });
    return this.view;
  }

  get last(): LastStep {
    const { result, state } = this.shown;
    return { result, state, alias: this.alias, stepName: this.alias };
  }
}

/** The entries and slots of one connection. */
export class Kept {
  private readonly slots = new Map<number, { value: unknown }>();
  private readonly entries = new Map<number, Entry>();

  /** A `value` frame: what it says, and keeps if it has a slot. Undefined: there is no such thing. */
  value(frame: Frame): { value: unknown } | undefined {
    const slot = frame.slot as number | undefined;
    if ("json" in frame) {
      const value = { value: frame.json };
      if (slot !== undefined) this.slots.set(slot, value);
      return value;
    }
    return slot === undefined ? undefined : this.slot(slot);
  }

  slot(number: number): { value: unknown } {
    const value = this.slots.get(number);
    if (value === undefined) throw new Error(`the engine named slot ${number}, which it has not filled`);
    return value;
  }

  add(frame: Frame): void {
    const number = frame.entry as number;
    const before = frame.before === undefined ? undefined : this.entry(frame.before as number);
    this.entries.set(
      number,
      new Entry(
        number,
        frame.alias as string,
        before,
        frame.status as StepStatus,
        frame.state as StepState | undefined,
        frame.error as NodeError | undefined,
        frame.json ?? null,
        frame.absent === true,
      ),
    );
  }

  entry(number: number): Entry {
    const entry = this.entries.get(number);
    if (entry === undefined) throw new Error(`the engine named entry ${number}, which it has not sent`);
    return entry;
  }

  forget(): void {
    this.slots.clear();
    this.entries.clear();
  }
}

/**
 * The scope as `steps`. A look-up walks the chain from its newest entry: no object of all steps is made for a function that
 * reads two of them.
 */
export function stepsOf(newest: Entry | undefined): StepEntries {
  const find = (alias: string | symbol): Entry | undefined => {
    for (let entry = newest; entry !== undefined; entry = entry.before) if (entry.alias === alias) return entry;
    return undefined;
  };
  let all: Map<string, Entry> | undefined;
  const everything = (): Map<string, Entry> => {
    if (all !== undefined) return all;
    const chain: Entry[] = [];
    for (let entry = newest; entry !== undefined; entry = entry.before) chain.push(entry);
    all = new Map();
    for (const entry of chain.reverse()) {
      all.delete(entry.alias); // run again: its place is that of the newer one
      all.set(entry.alias, entry);
    }
    return all;
  };
  // console.log looks at the target of a proxy, not at the proxy: so it is told what to show.
  const target = Object.defineProperty({}, inspect.custom, {
    value: () => Object.fromEntries([...everything()].map(([alias, entry]) => [alias, entry.shown])),
    configurable: true,
  });
  return new Proxy(target as StepEntries, {
    get: (_target, alias) => find(alias)?.shown ?? (Reflect.get(target, alias) as StepEntry),
    has: (_target, alias) => find(alias) !== undefined,
    ownKeys: () => [...everything().keys()],
    getOwnPropertyDescriptor: (_target, alias) => {
      const entry = find(alias);
      return entry && { value: entry.shown, enumerable: true, configurable: true, writable: false };
    },
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  });
}

export const FIRST: LastStep = Object.freeze({ result: undefined, state: EMPTY, alias: null, stepName: null });
