import { useSyncExternalStore } from "react";

/* As wide as the style sheets call narrow. */
const NARROW = window.matchMedia("(max-width: 48rem)");

function watch(listener: () => void): () => void {
  NARROW.addEventListener("change", listener);
  return () => NARROW.removeEventListener("change", listener);
}

/** Is this a phone, or as narrow as one? */
export function useNarrow(): boolean {
  return useSyncExternalStore(watch, () => NARROW.matches);
}
