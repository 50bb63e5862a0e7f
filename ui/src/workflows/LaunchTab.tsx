/* LaunchTab.tsx: a form made from the input schema. The server judges; what it refuses is shown at the
 * fields. Whoever prefers JSON, or has a workflow without a schema, types JSON. */
import Form from "@rjsf/core/lib/components/Form.js"; // its index would drag in a test helper and ajv
import type { RJSFSchema } from "@rjsf/utils";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useRef, useState, type FormEvent } from "react";
import { useLocation, useSearchParams } from "wouter";
import { api, ApiError, type JsonText } from "../api/client";
import { writeJson } from "../api/json";
import type { Json, JsonObject, Violation, Workflow } from "../api/types";
import { runPath } from "../app/paths";
import { useMayOperate } from "../app/session";
import { Boundary } from "../parts/Boundary";
import { Empty } from "../parts/Empty";
import { Icon } from "../parts/Icon";
import { parseJson } from "../parts/json";
import { Loading } from "../parts/Loading";
import { toast } from "../parts/toast";
import { formSchemaOf } from "./form/formSchema";
import { BAD_JSON, JsonField } from "./form/JsonField";
import { NumberField } from "./form/NumberField";
import { fromForm, toForm } from "./form/numbers";
import { templates } from "./form/theme";
import { uiSchemaOf } from "./form/uiSchema";
import { validator } from "./form/validator";
import { errorTree, withoutField } from "./form/violations";

const FIELDS = { FallbackField: JsonField, NumberField };

export function LaunchTab({ workflow }: { workflow: Workflow }) {
  const mayOperate = useMayOperate();
  const [params] = useSearchParams();
  const from = params.get("from") ?? "";
  const earlier = useQuery({ queryKey: ["run", from], queryFn: ({ signal }) => api.run(from, signal), enabled: from !== "" });
  if (!mayOperate)
    return (
      <Empty icon="play" title="You may look, but not launch">
        <p>Your session has the role viewer. Log in with an operator&apos;s token to start runs.</p>
      </Empty>
    );
  if (from && earlier.isPending) return <Loading what="the earlier input" />;
  return <Launch key={`${workflow.version} ${from}`} workflow={workflow} input={earlier.data?.input} from={earlier.data ? from : ""} />;
}

/** A schema from which a form can be made: of an object with properties, or of one value, which needs a name. */
function formSchema({ inputSchema: schema }: Workflow): JsonObject | null {
  if (!schema || typeof schema !== "object") return null;
  if (isOneValue(schema)) return { title: "Input", ...(formSchemaOf(schema) as JsonObject) };
  const told = schema.properties ?? schema.oneOf ?? schema.anyOf ?? schema.allOf ?? schema.$ref;
  return (schema.type ?? "object") === "object" && told !== undefined ? (formSchemaOf(schema) as JsonObject) : null;
}

const isOneValue = (schema: JsonObject | null) => typeof schema?.type === "string" && schema.type !== "object";

/** What a form of one value stands for while nobody has touched it. To send nothing would mean an empty object. */
const UNTOUCHED: Record<string, JsonText> = { string: '""', array: "[]", boolean: "false" };
const untouched = (schema: JsonObject | null): JsonText | undefined => (isOneValue(schema) ? (UNTOUCHED[String(schema?.type)] ?? "null") : undefined);

function Launch({ workflow, input, from }: { workflow: Workflow; input: Json | undefined; from: string }) {
  const schema = useMemo(() => formSchema(workflow), [workflow]);
  const uiSchema = useMemo(() => uiSchemaOf(schema ?? {}), [schema]);
  const [asJson, setAsJson] = useState(schema === null);
  const [data, setData] = useState(() => (input === undefined ? undefined : toForm(input)));
  const [text, setText] = useState(() => (input === undefined ? "" : writeJson(input, 2)));
  const [runId, setRunId] = useState("");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [badJson, setBadJson] = useState("");
  const [, navigate] = useLocation();
  const ids = useId();
  const alert = useRef<HTMLDivElement>(null);
  const fields = useRef<HTMLDivElement>(null);
  const violations: Violation[] = refusal?.problem.violations ?? [];

  useEffect(() => {
    if (refusal) alert.current?.focus();
  }, [refusal]);

  function inputOf(): { input?: JsonText } | null {
    if (!asJson) {
      const bad = fields.current?.querySelector<HTMLTextAreaElement>(BAD_JSON);
      bad?.focus(); // and it says what is wrong with it
      return bad ? null : { input: data === undefined ? untouched(schema) : writeJson(fromForm(data)) };
    }
    const parsed = parseJson(text);
    if (!("error" in parsed)) return { input: parsed.text ?? untouched(schema) };
    setBadJson(parsed.error);
    return null;
  }

  async function launch(event?: FormEvent) {
    event?.preventDefault();
    if (busy) return;
    setBadJson("");
    const given = inputOf();
    if (!given) return;
    setBusy(true);
    setRefusal(null);
    try {
      const started = await api.launch(workflow.name, { ...given, ...(runId.trim() && { runId: runId.trim() }) });
      toast(`Started ${started.runId}`);
      navigate(runPath(started.runId));
    } catch (error) {
      setRefusal(error instanceof ApiError ? error : new ApiError(-1, { title: String(error), status: -1 }));
      setBusy(false);
    }
  }

  function change(toJson: boolean) {
    setBadJson("");
    if (toJson) setText(data === undefined ? "" : writeJson(fromForm(data), 2));
    else {
      const parsed = parseJson(text);
      if ("error" in parsed) return setBadJson(parsed.error);
      setData(parsed.value === undefined ? undefined : toForm(parsed.value));
    }
    setAsJson(toJson);
  }

  const known = new Set(Object.keys((schema?.properties as JsonObject | undefined) ?? {}));
  // Those about the request around the input (a bad run id) have no field of the form either.
  const inForm = !asJson && refusal?.problem.in !== "body";
  const listed = inForm ? withoutField(violations, known, data, isOneValue(schema)) : violations;
  const atFields = inForm ? violations.filter((violation) => !listed.includes(violation)) : [];
  return (
    <div className="launch card">
      {from && (
        <p className="hint">
          With the input of <strong>{from}</strong>; change what you like.
        </p>
      )}
      <div ref={alert} tabIndex={-1} role="alert" className="launch-alert">
        {refusal && (
          <div className="failure">
            <Icon name="question" size={20} />
            <div>
              <strong>{refusal.status === 422 && violations.length > 0 ? countOf(violations.length) : refusal.problem.title}</strong>
              {(refusal.status !== 422 || violations.length === 0) && refusal.problem.detail && <p>{refusal.problem.detail}</p>}
              {listed.length > 0 && (
                <ul>
                  {listed.map((violation, i) => (
                    <li key={i}>
                      {violation.path ? <code>{violation.path}</code> : "The input"} {violation.message}
                    </li>
                  ))}
                </ul>
              )}
            </div>
          </div>
        )}
      </div>

      {schema && (
        <div className="launch-mode" role="group" aria-label="How to give the input">
          <button type="button" className="button small" aria-pressed={!asJson} onClick={() => change(false)}>
            Form
          </button>
          <button type="button" className="button small" aria-pressed={asJson} onClick={() => change(true)}>
            JSON
          </button>
        </div>
      )}

      {asJson || !schema ? (
        <div className="field">
          <label htmlFor={`${ids}json`}>Input, as JSON</label>
          <textarea
            id={`${ids}json`}
            className="mono"
            rows={8}
            value={text}
            spellCheck={false}
            placeholder={untouched(schema) ?? (schema ? "{ }" : "null")}
            onChange={(event) => setText(event.target.value)}
            aria-invalid={badJson !== ""}
            aria-describedby={`${ids}bad`}
          />
          <div id={`${ids}bad`} role="alert" className="field-error">
            {badJson}
          </div>
          {!schema && <span className="hint">This workflow has no input schema: it takes any JSON, or nothing.</span>}
        </div>
      ) : (
        <div ref={fields}>
          <Boundary fallback={() => <p className="hint">No form can be made from this schema. Give the input as JSON.</p>}>
            <Form
              tagName="div"
              className="generated"
              idPrefix="input" // "root" is the page's
              schema={schema as RJSFSchema}
              uiSchema={uiSchema}
              validator={validator}
              templates={templates}
              fields={FIELDS}
              formData={data}
              noValidate
              noHtml5Validate
              showErrorList={false}
              extraErrors={errorTree(atFields)}
              onChange={(event) => setData(event.formData as Json)}
            />
          </Boundary>
        </div>
      )}

      <form className="launch-foot" onSubmit={(event) => void launch(event)}>
        <details>
          <summary>Choose the run&apos;s id</summary>
          <div className="field">
            <label htmlFor={`${ids}id`}>Run id</label>
            <input
              id={`${ids}id`}
              value={runId}
              onChange={(event) => setRunId(event.target.value)}
              pattern="[A-Za-z0-9._:\-]{1,128}"
              spellCheck={false}
              placeholder="made by the server"
            />
            <span className="hint">
              Launching twice with the same id and input starts one run. Letters, digits and <code>. _ : -</code>
            </span>
          </div>
        </details>
        <button className="button primary" disabled={busy}>
          <Icon name="play" size={14} /> {busy ? "Launching…" : "Launch"}
        </button>
      </form>
    </div>
  );
}

function countOf(count: number): string {
  return count === 1 ? "The workflow refuses this input" : `The workflow refuses this input, for ${count} reasons`;
}
