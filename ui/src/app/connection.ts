/* connection.ts: is the page up to date? The sum of all feeds that are open, for the banner. */
import { useSyncExternalStore } from "react";
import type { FeedState } from "../api/feed";

interface Reported {
  state: FeedState;
  retry: () => void;
}

const feeds = new Map<object, Reported>();
const listeners = new Set<() => void>();
let sum: FeedState | "none" = "none";

function sumUp(): FeedState | "none" {
  const states = [...feeds.values()].map((feed) => feed.state);
  for (const state of ["lost", "connecting", "live", "ended"] as const) if (states.includes(state)) return state;
  return "none";
}

/** A feed tells how it fares; null: it is no more. */
export function report(feed: object, state: FeedState | null, retry: () => void = () => undefined): void {
  if (state === null) feeds.delete(feed);
  else {
    // Trying again is not news: it stays lost until it is live.
    const before = feeds.get(feed)?.state;
    feeds.set(feed, { state: state === "connecting" && before === "lost" ? "lost" : state, retry });
  }
  const now = sumUp();
  if (now === sum) return;
  sum = now;
  for (const listener of listeners) listener();
}

export function retryAll(): void {
  for (const feed of feeds.values()) if (feed.state === "lost") feed.retry();
}

export function useConnection(): FeedState | "none" {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => sum,
  );
}
