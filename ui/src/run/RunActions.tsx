/* RunActions.tsx: what can be told to a run: cancel it, send it a signal. */
import { useId, useState, type FormEvent } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { Run } from "../api/types";
import { useMayOperate } from "../app/session";
import { Dialog } from "../parts/Dialog";
import { Icon } from "../parts/Icon";
import { parseJson } from "../parts/json";
import { isTerminal } from "./live";
import { useTell } from "./tell";

type Asking = "cancel" | "signal" | null;

export function RunActions({ run }: { run: Run }) {
  const mayOperate = useMayOperate();
  const [asking, setAsking] = useState<Asking>(null);
  if (!mayOperate) return null;
  const close = () => setAsking(null);
  return (
    <div className="actions">
      {!isTerminal(run.status) && (
        <>
          <button className="button" onClick={() => setAsking("signal")}>
            <Icon name="bell" /> Signal…
          </button>
          <button className="button danger" onClick={() => setAsking("cancel")}>
            <Icon name="stop" /> Cancel…
          </button>
        </>
      )}
      {isTerminal(run.status) && (
        <Link
          className="button"
          href={`/workflows/${encodeURIComponent(run.workflow)}?from=${encodeURIComponent(run.runId)}`}
        >
          <Icon name="retry" /> Run again…
        </Link>
      )}
      <CancelDialog run={run} open={asking === "cancel"} onClose={close} />
      <SignalDialog run={run} open={asking === "signal"} onClose={close} />
    </div>
  );
}

interface DialogProps {
  run: Run;
  open: boolean;
  onClose: () => void;
}

function CancelDialog({ run, open, onClose }: DialogProps) {
  const { busy, refusal, tell } = useTell();
  async function cancel() {
    if (await tell(() => api.cancel(run.runId), `Cancelled ${run.runId}`)) onClose();
  }
  return (
    <Dialog open={open} onClose={onClose} title="Cancel this run?">
      <p>
        What runs is stopped, what waits will never start, and <code>onError</code> is not called. Steps that are done
        stay done. A cancelled run cannot be continued.
      </p>
      <div role="alert" className="field-error">
        {refusal}
      </div>
      <div className="actions">
        <button className="button" onClick={onClose}>
          Keep it running
        </button>
        <button className="button danger primary" disabled={busy} onClick={() => void cancel()}>
          {busy ? "Cancelling…" : "Cancel the run"}
        </button>
      </div>
    </Dialog>
  );
}

/** Sends a signal; `name` is known where the run waits for one. */
export function SignalDialog({ run, open, onClose, name }: DialogProps & { name?: string }) {
  return (
    <Dialog open={open} onClose={onClose} title={name ? `Answer “${name}”` : "Send a signal"}>
      <SignalForm run={run} onClose={onClose} name={name} />
    </Dialog>
  );
}

const APPROVED = '{"approved":true}';
const REJECTED = '{"approved":false}';

/** For a run that waits for a signal: yes or no at once, or anything else. */
export function SignalAnswer({ run, name }: { run: Run; name: string }) {
  const [asking, setAsking] = useState(false);
  const { busy, refusal, tell } = useTell();
  const send = (payload: string, done: string) =>
    void tell(() => api.signal(run.runId, name, payload), `${done} “${name}”`);
  return (
    <span className="actions wait-actions">
      <button className="button primary small" disabled={busy} onClick={() => send(APPROVED, "Approved")}>
        Approve
      </button>
      <button className="button danger small" disabled={busy} onClick={() => send(REJECTED, "Rejected")}>
        Reject
      </button>
      <button className="button small" onClick={() => setAsking(true)}>
        Other answer…
      </button>
      {refusal && (
        <span role="alert" className="field-error">
          {refusal}
        </span>
      )}
      <SignalDialog run={run} name={name} open={asking} onClose={() => setAsking(false)} />
    </span>
  );
}

function SignalForm({ run, onClose, name }: { run: Run; onClose: () => void; name?: string }) {
  const ids = useId();
  const { busy, refusal, tell } = useTell();
  const [given, setGiven] = useState(name ?? "");
  const [text, setText] = useState("null");
  const [bad, setBad] = useState("");

  async function submit(event: FormEvent) {
    event.preventDefault();
    const parsed = parseJson(text);
    setBad("error" in parsed ? parsed.error : "");
    if ("error" in parsed) return;
    if (await tell(() => api.signal(run.runId, given, parsed.text ?? "null"), `Sent “${given}”`)) onClose();
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      {name === undefined && (
        <div className="field">
          <label htmlFor={`${ids}n`}>Name</label>
          <input
            id={`${ids}n`}
            required
            autoFocus
            value={given}
            onChange={(event) => setGiven(event.target.value)}
            spellCheck={false}
          />
          <span className="hint">It is kept until a step waits for a signal of this name.</span>
        </div>
      )}
      <div className="field">
        <label htmlFor={`${ids}p`}>Content, as JSON</label>
        <textarea
          id={`${ids}p`}
          className="mono"
          rows={4}
          value={text}
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
          aria-invalid={bad !== ""}
          aria-describedby={`${ids}e`}
        />
        <div role="alert" id={`${ids}e`} className="field-error">
          {bad || refusal}
        </div>
      </div>
      <div className="actions">
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button className="button primary" disabled={busy || given.trim() === ""}>
          {busy ? "Sending…" : "Send"}
        </button>
      </div>
    </form>
  );
}
