/**
 * unhandled.ts: a promise that a step has let go of and that fails: the step's error, not the end of this process.
 *
 * Whose it is, is known by the asynchronous context in which it was made. Bun does not tell that: there it is the step's that runs, if
 * only one does. What is no step's ends the process, as it does without us, unless the program listens itself.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export interface Failing {
  /** False: it has ended already. */
  fail(reason: unknown): boolean;
}

const context = new AsyncLocalStorage<Failing>();
const isBun = "Bun" in globalThis;
const running = new Set<Failing>(); // of Bun only
let users = 0;

export function watchRejections(): void {
  if (users++ === 0) process.on("unhandledRejection", onRejection);
}

export function unwatchRejections(): void {
  if (--users === 0) process.removeListener("unhandledRejection", onRejection);
}

/** Call a function so that what it lets go of is known as its own. */
export function within<T>(owner: Failing, call: () => T): T {
  if (isBun) running.add(owner);
  return context.run(owner, call);
}

/** It has ended: nothing is its own any more. */
export function ended(owner: Failing): void {
  if (isBun) running.delete(owner);
}

function onRejection(reason: unknown): void {
  const owner = context.getStore() ?? (running.size === 1 ? [...running][0] : undefined);
  if (owner !== undefined) {
    if (!owner.fail(reason)) console.error("rival: a promise of a step that has ended was rejected:", reason);
    return;
  }
  if (process.listenerCount("unhandledRejection") > 1) return;
  // As if nobody listened. Thrown from a timer, since a rejection here would come back to us.
  setImmediate(() => {
    throw reason;
  });
}
