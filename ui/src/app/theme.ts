/* theme.ts: light, dark, or as the system says. Kept in the browser; tokens.css does the rest. */
import { useSyncExternalStore } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "rival.theme";
const listeners = new Set<() => void>();
let theme: Theme = read();

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return THEMES.find((t) => t === kept) ?? "system";
  } catch {
    return "system"; // storage may be forbidden
  }
}

export function applyTheme(): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function setTheme(next: Theme): void {
  theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    /* then it holds until the page is closed */
  }
  applyTheme();
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => theme,
  );
}
