/* SignalFields.tsx: the answer to a signal that has a schema, as a form. Fetched when a run waits for one. */
import { useMemo, useRef, useState, type FormEvent } from "react";
import { api, ApiError } from "../api/client";
import { writeJson } from "../api/json";
import type { Json, JsonSchema, Run, Violation } from "../api/types";
import { BAD_JSON } from "../workflows/form/JsonField";
import { formSchema, isOneValue, untouched } from "../workflows/form/formSchema";
import { fromForm } from "../workflows/form/numbers";
import { SchemaFields } from "../workflows/form/SchemaFields";
import { withoutField } from "../workflows/form/violations";
import "../workflows/workflows.css";
import { SignalDialog } from "./RunActions";
import { useTell } from "./tell";

export function SignalFields({ run, name, schema: given }: { run: Run; name: string; schema: JsonSchema }) {
  const schema = useMemo(() => formSchema(given, "Answer"), [given]);
  const [data, setData] = useState<Json>();
  const [violations, setViolations] = useState<readonly Violation[]>([]);
  const [asking, setAsking] = useState(false);
  const { busy, refusal, tell } = useTell();
  const form = useRef<HTMLFormElement>(null);

  async function send(event: FormEvent) {
    event.preventDefault();
    const bad = form.current?.querySelector<HTMLTextAreaElement>(BAD_JSON);
    bad?.focus(); // and it says what is wrong with it
    if (bad || busy) return;
    setViolations([]);
    const payload = data === undefined ? (untouched(schema) ?? "{}") : writeJson(fromForm(data));
    await tell(
      () => api.signal(run.runId, name, payload),
      `Sent “${name}”`,
      (error) => {
        if (error instanceof ApiError) setViolations(error.problem.violations ?? []);
      },
    );
  }

  const known = new Set(Object.keys((schema?.properties as object | undefined) ?? {}));
  const listed = withoutField(violations, known, data, isOneValue(schema));
  const atFields = violations.filter((violation) => !listed.includes(violation));
  return (
    <form
      ref={form}
      className="signal-fields"
      aria-label={`Answer to ${name}`}
      noValidate
      onSubmit={(event) => void send(event)}
    >
      {schema && (
        <SchemaFields
          schema={schema}
          data={data}
          onChange={setData}
          violations={atFields}
          idPrefix={`signal-${name}`}
        />
      )}
      <div role="alert" className="field-error">
        {listed.length > 0
          ? listed.map((violation) => `${violation.path} ${violation.message}`.trim()).join("; ")
          : violations.length === 0 && refusal}
      </div>
      <div className="actions">
        {schema && (
          <button className="button primary small" disabled={busy}>
            {busy ? "Sending…" : `Send “${name}”`}
          </button>
        )}
        <button type="button" className="button small" onClick={() => setAsking(true)}>
          Answer as JSON…
        </button>
      </div>
      <SignalDialog run={run} name={name} open={asking} onClose={() => setAsking(false)} />
    </form>
  );
}
