import { useState } from "react";
import { Icon } from "./Icon";

const SHOWN_MS = 1500;

export function CopyButton({ text, what }: { text: string | (() => string); what: string }) {
  const [done, setDone] = useState(false);
  async function copy() {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setDone(true);
      window.setTimeout(() => setDone(false), SHOWN_MS);
    } catch {
      /* no permission, or not a secure page: the text can still be selected */
    }
  }
  return (
    <button
      className="button quiet small icon-only"
      onClick={() => void copy()}
      aria-label={done ? "Copied" : `Copy ${what}`}
      title={done ? "Copied" : `Copy ${what}`}
    >
      {done ? <span aria-hidden="true">✓</span> : <Icon name="copy" size={14} />}
    </button>
  );
}
