/** pending.ts: a step whose result comes from outside, later. */
const PENDING = Symbol.for("rival.pending");

export interface PendingResult {
  readonly handle: string;
}

/**
 * Returned by a step: it is parked, durably, until somebody completes the handle (`engine.complete`, `rival complete`) or its
 * timeout is over. It is not run again after a restart.
 */
export function pending(handle: string): PendingResult {
  if (typeof handle !== "string" || handle === "") throw new TypeError("pending: a handle is needed, a text that is not empty");
  return Object.defineProperty({ handle }, PENDING, { value: true });
}

export function isPending(value: unknown): value is PendingResult {
  return typeof value === "object" && value !== null && PENDING in value;
}
