import { useSyncExternalStore } from "react";
import { formatAbsolute, formatDuration, formatRelative } from "./time";

/* One clock for the whole page: a thousand rows, one timer, and none while nobody looks at a time. */
const TICK_MS = 1000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: number | undefined;

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    now = Date.now();
    timer = window.setInterval(() => {
      now = Date.now();
      for (const each of listeners) each();
    }, TICK_MS);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.clearInterval(timer);
  };
}

/** The time, once a second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** "3 min ago", with the exact time as a title. */
export function When({ at }: { at: number | null | undefined }) {
  const current = useNow();
  if (!at) return <span className="muted">–</span>;
  return (
    <time className="clock" dateTime={new Date(at).toISOString()} title={formatAbsolute(at)}>
      {formatRelative(at, current)}
    </time>
  );
}

type Moment = number | null | undefined;

/** How long it took, or, while it goes on, how long so far. */
export function Duration({ from, to }: { from: Moment; to: Moment }) {
  if (!from) return <span className="muted">–</span>;
  return to ? <span className="tabular">{formatDuration(to - from)}</span> : <Running from={from} />;
}

function Running({ from }: { from: number }) {
  const elapsed = Math.max(0, useNow() - from);
  // It ticks once a second: tenths would only jump.
  return (
    <span className="tabular clock">
      {elapsed < 1000 ? "0 s" : formatDuration(Math.floor(elapsed / 1000) * 1000).replace(".0 s", " s")}
    </span>
  );
}
