/* views.ts: filters with a name. The name is in the address with them, so that a view can be sent to somebody; which
 * ones are listed is this browser's own. */
import { useSyncExternalStore } from "react";

export interface View {
  name: string;
  /** what stands behind the ? */
  query: string;
}

const KEY = "rival.views";
const listeners = new Set<() => void>();
let views: readonly View[] = read();

function read(): readonly View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    if (!Array.isArray(kept)) return [];
    return kept.flatMap((each: Partial<View> | null) =>
      typeof each?.name === "string" && typeof each.query === "string" ? [{ name: each.name, query: each.query }] : [],
    );
  } catch {
    return []; // storage may be forbidden, and what is in it anything
  }
}

function set(next: readonly View[]): void {
  views = next;
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    /* then they hold until the page is closed */
  }
  for (const listener of listeners) listener();
}

export function saveView(view: View): void {
  set([...views.filter((each) => each.name !== view.name), view]);
}

export function removeView(name: string): void {
  set(views.filter((each) => each.name !== name));
}

export function useViews(): readonly View[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => views,
  );
}
