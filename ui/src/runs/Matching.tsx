/* Matching.tsx: cancel, or run again, all runs that the filter finds, also those that were not read. The server does a
 * piece at each call; between two of them it can be stopped. */
import { useRef, useState } from "react";
import { api, ApiError, type RunQuery } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { toast } from "../parts/toast";

const PIECE = 100;

type Action = "cancel" | "again";

const WORDS = {
  cancel: {
    button: "Cancel them…",
    title: "Cancel all that match?",
    text: "What runs in them is stopped. Runs that have ended are left as they are. This cannot be undone.",
    go: "Cancel all that match",
    done: "Cancelled",
  },
  again: {
    button: "Run them again…",
    title: "Run all that match again?",
    text: "Each that has ended is started once more, with its own input and the definition that is registered now.",
    go: "Run all that match again",
    done: "Started again",
  },
};

interface Progress {
  seen: number;
  done: number;
  failed: number;
}

/** `count`: how many match, where that is known. */
export function Matching({
  query,
  count,
  onClear,
}: {
  query: RunQuery;
  count: number | undefined;
  onClear: () => void;
}) {
  const [action, setAction] = useState<Action | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const isStopped = useRef(false);

  async function go(what: Action) {
    const sum: Progress = { seen: 0, done: 0, failed: 0 };
    let why = "";
    let cursor: string | null | undefined;
    isStopped.current = false;
    setProgress(sum);
    try {
      do {
        const piece = await api.bulk(what, { ...query, limit: PIECE, ...(cursor && { cursor }) });
        sum.seen += piece.matched;
        sum.done += piece.done;
        sum.failed += piece.failed.length;
        why = piece.failed.at(-1)?.detail ?? why;
        cursor = piece.nextCursor;
        setProgress({ ...sum });
      } while (cursor && !isStopped.current);
    } catch (error) {
      sum.failed++;
      why = error instanceof ApiError ? error.message : String(error);
    }
    setProgress(null);
    setAction(null);
    const text = `${WORDS[what].done}: ${sum.done.toLocaleString("en")} of ${sum.seen.toLocaleString("en")}`;
    if (sum.failed > 0) toast(`${text}. ${sum.failed.toLocaleString("en")} were refused: ${why}`, true);
    else toast(cursor ? `${text}, then stopped` : text);
    onClear();
  }

  const words = action && WORDS[action];
  return (
    <div className="bulk" role="region" aria-label="All matching runs">
      <span role="status">
        All {count === undefined ? "that match" : `${count.toLocaleString("en")} matching`} selected
      </span>
      {(["cancel", "again"] as const).map((each) => (
        <button
          key={each}
          className={each === "cancel" ? "button danger small" : "button small"}
          onClick={() => setAction(each)}
        >
          {WORDS[each].button}
        </button>
      ))}
      <button className="button quiet small" onClick={onClear}>
        Clear
      </button>
      <Dialog
        open={words !== null}
        onClose={() => (progress ? (isStopped.current = true) : setAction(null))}
        title={words?.title ?? ""}
      >
        <p>{words?.text}</p>
        {progress && (
          <p role="status">
            {progress.done.toLocaleString("en")} done, {progress.seen.toLocaleString("en")} looked at
            {count !== undefined && ` of ${count.toLocaleString("en")}`}
          </p>
        )}
        <div className="actions">
          <button className="button" onClick={() => (progress ? (isStopped.current = true) : setAction(null))}>
            {progress ? "Stop" : "Close"}
          </button>
          <button
            className="button danger primary"
            disabled={progress !== null}
            onClick={() => action && void go(action)}
          >
            {words?.go}
          </button>
        </div>
      </Dialog>
    </div>
  );
}
