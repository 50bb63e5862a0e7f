/* toast.tsx: a short word about something that was done, gone after a while; or that went wrong, until it is closed. */
import { useSyncExternalStore } from "react";
import { Icon } from "./Icon";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

const STAYS_MS = 6000;
const MOST = 3;
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let lastId = 0;

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function drop(id: number): void {
  set(toasts.filter((each) => each.id !== id));
}

export function toast(text: string, bad = false): void {
  const id = ++lastId;
  set([...toasts.slice(1 - MOST), { id, text, bad }]);
  if (!bad) window.setTimeout(() => drop(id), STAYS_MS);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((each) => (
        <div key={each.id} className={each.bad ? "toast bad" : "toast"} role={each.bad ? "alert" : undefined}>
          <span>{each.text}</span>
          <button className="button quiet icon-only small" onClick={() => drop(each.id)} aria-label="Dismiss">
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}
