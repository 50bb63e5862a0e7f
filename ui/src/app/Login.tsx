import { useId, useState, type FormEvent } from "react";
import { api, ApiError } from "../api/client";
import type { Session } from "../api/types";
import { Mark } from "../parts/Mark";
import { useTitle } from "./title";

/** `ended`: there was a session, and it is over. */
export function Login({ ended, onDone }: { ended: boolean; onDone: (session: Session) => void }) {
  useTitle("Log in");
  const field = useId();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    try {
      await api.login(token.trim());
      onDone(await api.session());
    } catch (error) {
      const known = error instanceof ApiError ? error : null;
      setRefusal(known?.status === 401 ? "The server does not know this token." : (known?.message ?? String(error)));
      setBusy(false);
    }
  }

  return (
    <main className="login">
      <form className="login-card card" onSubmit={(event) => void submit(event)}>
        <Mark size={40} />
        <h1>Log in to Rival</h1>
        {ended && (
          <p role="status" className="login-ended">
            <strong>Your session ended.</strong> Log in again to go on where you were.
          </p>
        )}
        <p className="muted">
          This server asks for a token. It is one of the lines of the file that the server was started with (
          <code>--token-file</code>).
        </p>
        <label htmlFor={field}>Token</label>
        <input
          id={field}
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          spellCheck={false}
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-invalid={refusal !== ""}
          aria-describedby={refusal ? `${field}-refusal` : undefined}
        />
        <div role="alert" id={`${field}-refusal`} className="field-error">
          {refusal}
        </div>
        <button className="button primary" disabled={busy || token.trim() === ""}>
          {busy ? "Logging in…" : "Log in"}
        </button>
      </form>
    </main>
  );
}
