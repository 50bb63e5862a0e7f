/* BulkBar.tsx: what to do with the selected runs. */
import { useState, type ReactNode } from "react";
import { api, ApiError } from "../api/client";
import type { RunSummary } from "../api/types";
import { Dialog } from "../parts/Dialog";
import { toast } from "../parts/toast";
import { isTerminal } from "../run/live";

/** So many cancels are under way at once. */
const AT_ONCE = 4;

export function BulkBar({
  runs,
  onClear,
  children,
}: {
  runs: RunSummary[];
  onClear: () => void;
  children?: ReactNode;
}) {
  const [asking, setAsking] = useState(false);
  const [done, setDone] = useState<number | null>(null);
  const alive = runs.filter((run) => !isTerminal(run.status));

  async function cancelAll() {
    const queue = [...alive];
    let failed = 0;
    let lastRefusal = "";
    setDone(0);
    async function worker() {
      for (let run = queue.shift(); run; run = queue.shift()) {
        try {
          await api.cancel(run.runId);
        } catch (error) {
          failed++;
          lastRefusal = error instanceof ApiError ? error.message : String(error);
        }
        setDone((count) => (count ?? 0) + 1);
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    setDone(null);
    setAsking(false);
    if (failed > 0) toast(`${failed} of ${alive.length} could not be cancelled: ${lastRefusal}`, true);
    else {
      toast(alive.length === 1 ? "Cancelled 1 run" : `Cancelled ${alive.length} runs`);
      onClear();
    }
  }

  if (runs.length === 0) return null;
  return (
    <div className="bulk" role="region" aria-label="Selected runs">
      <span role="status">{runs.length.toLocaleString("en")} selected</span>
      {children}
      <button className="button danger small" disabled={alive.length === 0} onClick={() => setAsking(true)}>
        Cancel {alive.length > 0 ? alive.length.toLocaleString("en") : "(all have ended)"}
      </button>
      <button className="button quiet small" onClick={onClear}>
        Clear
      </button>
      <Dialog
        open={asking}
        onClose={() => setAsking(false)}
        title={alive.length === 1 ? "Cancel 1 run?" : `Cancel ${alive.length.toLocaleString("en")} runs?`}
      >
        <p>What runs in them is stopped. Runs that have ended are left as they are. This cannot be undone.</p>
        <div className="actions">
          <button className="button" onClick={() => setAsking(false)}>
            Keep them running
          </button>
          <button className="button danger primary" disabled={done !== null} onClick={() => void cancelAll()}>
            {done === null ? "Cancel them" : `Cancelling… ${done} of ${alive.length}`}
          </button>
        </div>
      </Dialog>
    </div>
  );
}
