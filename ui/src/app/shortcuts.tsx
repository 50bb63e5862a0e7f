/* shortcuts.tsx: keys that do something on every page, and the dialog that lists them. */
import { useEffect, useRef } from "react";
import { Dialog } from "../parts/Dialog";

type Shortcuts = Record<string, () => void>;

const SEQUENCE_MS = 1200;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Call a function for a key ("?") or two keys one after the other ("g r"), unless somebody is typing. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const newest = useRef(shortcuts);
  useEffect(() => {
    newest.current = shortcuts;
  });
  useEffect(() => {
    let first = "";
    let at = 0;
    function press(event: KeyboardEvent) {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        isTyping(event.target) ||
        document.querySelector("dialog[open]")
      )
        return;
      const both = Date.now() - at < SEQUENCE_MS ? `${first} ${event.key}` : event.key;
      const action = newest.current[both] ?? newest.current[event.key];
      first = event.key;
      at = Date.now();
      if (!action) return;
      event.preventDefault();
      at = 0;
      action();
    }
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

const LISTED: [string, string][] = [
  ["g h", "Go home"],
  ["g w", "Go to the workflows"],
  ["g r", "Go to the runs"],
  ["/", "Search (workflows, runs, logs)"],
  ["j  k", "Next, previous run in the list"],
  ["x", "Select the run"],
  ["Enter", "Open it"],
  ["1 … 6", "On a run: its tabs"],
  ["+ - 0", "In a graph or a timeline: closer, further, all of it"],
  ["?", "This list"],
  ["Esc", "Close a dialog"],
];

export function ShortcutsDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts">
      <dl className="shortcuts">
        {LISTED.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split(/\s+/).map((key) => (key === "…" ? " … " : <kbd key={key}>{key}</kbd>))}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
