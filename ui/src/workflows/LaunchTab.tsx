/* LaunchTab.tsx: a form made from the input schema. The server judges; what it refuses is shown at the
 * fields. Whoever prefers JSON, or has a workflow without a schema, types JSON. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useRef, useState, type FormEvent } from "react";
import { useLocation, useSearchParams } from "wouter";
import { api, ApiError, type JsonText } from "../api/client";
import { writeJson } from "../api/json";
import type { Json, JsonObject, Violation, Workflow } from "../api/types";
import { runPath } from "../app/paths";
import { useMayOperate } from "../app/session";
import { Empty } from "../parts/Empty";
import { Icon } from "../parts/Icon";
import { parseJson } from "../parts/json";
import { Loading } from "../parts/Loading";
import { toast } from "../parts/toast";
import { boxesOf } from "../run/plan";
import { dropDraft, keepDraft, readDraft, type Draft } from "./drafts";
import { formSchema, isOneValue, untouched } from "./form/formSchema";
import { BAD_JSON } from "./form/JsonField";
import { fromForm, toForm } from "./form/numbers";
import { SchemaFields } from "./form/SchemaFields";
import { withoutField } from "./form/violations";
import { PlanOutline } from "./PlanOutline";

/** So often a draft is kept while somebody types. */
const KEEP_MS = 300;

export function LaunchTab({ workflow }: { workflow: Workflow }) {
  const mayOperate = useMayOperate();
  const [params] = useSearchParams();
  const from = params.get("from") ?? "";
  const earlier = useQuery({
    queryKey: ["run", from],
    queryFn: ({ signal }) => api.run(from, signal),
    enabled: from !== "",
  });
  if (!mayOperate)
    return (
      <Empty icon="play" title="You may look, but not launch">
        <p>Your session has the role viewer. Log in with an operator&apos;s token to start runs.</p>
      </Empty>
    );
  if (from && earlier.isPending) return <Loading what="the earlier input" />;
  return (
    <div className="launch-page">
      <Launch
        key={`${workflow.version} ${from}`}
        workflow={workflow}
        input={earlier.data?.input}
        from={earlier.data ? from : ""}
      />
      <section className="card launch-plan" aria-labelledby="launch-plan">
        <h2 id="launch-plan">What it will do</h2>
        <PlanOutline boxes={boxesOf(workflow.plan)} />
      </section>
    </div>
  );
}

function Launch({ workflow, input, from }: { workflow: Workflow; input: Json | undefined; from: string }) {
  const schema = useMemo(() => formSchema(workflow.inputSchema), [workflow]);
  const [first, setFirst] = useState(() => beginning(workflow.name, schema !== null, from ? input : undefined));
  const [round, setRound] = useState(0); // the form keeps what is in it, unless it is another one
  const [asJson, setAsJson] = useState(first.asJson);
  const [data, setData] = useState(first.data);
  const [text, setText] = useState(first.text);
  const [runId, setRunId] = useState(first.runId);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [badJson, setBadJson] = useState("");
  const [, navigate] = useLocation();
  const ids = useId();
  const alert = useRef<HTMLDivElement>(null);
  const fields = useRef<HTMLDivElement>(null);
  const violations: Violation[] = refusal?.problem.violations ?? [];
  const sent = useDraft(
    workflow.name,
    { text: asJson || data === undefined ? text : writeJson(fromForm(data), 2), asJson, runId },
    asJson !== first.asJson || data !== first.data || text !== first.text || runId !== first.runId,
  );

  function startAfresh() {
    dropDraft(workflow.name);
    const next = beginning(workflow.name, schema !== null, from ? input : undefined);
    setFirst(next);
    setRound(round + 1);
    setAsJson(next.asJson);
    setData(next.data);
    setText(next.text);
    setRunId(next.runId);
    setRefusal(null);
    setBadJson("");
  }

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

  async function launch(event: FormEvent) {
    event.preventDefault();
    if (busy) return;
    setBadJson("");
    const given = inputOf();
    if (!given) return;
    setBusy(true);
    setRefusal(null);
    try {
      const started = await api.launch(workflow.name, {
        ...given,
        ...(runId.trim() && { runId: runId.trim() }),
        ...(from && { rerunOf: from }),
      });
      sent();
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
    <form
      className="launch card"
      noValidate // the server judges
      aria-label={`Launch ${workflow.name}`}
      onSubmit={(event) => void launch(event)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        event.currentTarget.requestSubmit();
      }}
    >
      {first.isDraft && (
        <p className="hint launch-draft" role="status">
          As you left it.{" "}
          <button type="button" className="link-button" onClick={startAfresh}>
            Start afresh
          </button>
        </p>
      )}
      {from && !first.isDraft && (
        <p className="hint">
          With the input of <strong>{from}</strong>; change what you like.
        </p>
      )}
      <div ref={alert} tabIndex={-1} role="alert" className="launch-alert">
        {refusal && (
          <div className="failure">
            <Icon name="alert" size={20} />
            <div>
              <strong>
                {refusal.status === 422 && violations.length > 0 ? countOf(violations.length) : refusal.problem.title}
              </strong>
              {(refusal.status !== 422 || violations.length === 0) && refusal.problem.detail && (
                <p>{refusal.problem.detail}</p>
              )}
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
          <SchemaFields
            key={round}
            schema={schema}
            data={data}
            onChange={(next, typed) => {
              setData(next);
              if (!typed && data === first.data) setFirst({ ...first, data: next });
            }}
            violations={atFields}
            idPrefix="input"
          />
        </div>
      )}

      <div className="launch-foot">
        <details>
          <summary>Choose the run&apos;s id</summary>
          <div className="field">
            <label htmlFor={`${ids}id`}>Run id</label>
            <input
              id={`${ids}id`}
              value={runId}
              onChange={(event) => setRunId(event.target.value)}
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
      </div>
    </form>
  );
}

interface Beginning extends Draft {
  data: Json | undefined;
  isDraft: boolean;
}

/** The input of an earlier run, else the draft of this workflow, else nothing. */
function beginning(workflow: string, hasForm: boolean, input: Json | undefined): Beginning {
  const draft = input === undefined ? readDraft(workflow) : null;
  if (!draft)
    return {
      asJson: !hasForm,
      data: input === undefined ? undefined : toForm(input),
      text: input === undefined ? "" : writeJson(input, 2),
      runId: "",
      isDraft: false,
    };
  const parsed = parseJson(draft.text);
  const isForm = hasForm && !draft.asJson && !("error" in parsed);
  const data = isForm && parsed.value !== undefined ? toForm(parsed.value) : undefined;
  return { ...draft, asJson: !isForm, data, isDraft: true };
}

/** Keeps what is typed, until it is sent. What is as it was at first is no draft. */
function useDraft(workflow: string, draft: Draft, isTouched: boolean): () => void {
  const newest = useRef({ draft, isTouched });
  const isSent = useRef(false);
  useEffect(() => {
    newest.current = { draft, isTouched };
  });
  useEffect(() => {
    const keep = () => {
      if (newest.current.isTouched && !isSent.current) keepDraft(workflow, newest.current.draft);
    };
    const timer = window.setInterval(keep, KEEP_MS);
    window.addEventListener("pagehide", keep);
    return () => {
      window.clearInterval(timer);
      window.removeEventListener("pagehide", keep);
      keep();
    };
  }, [workflow]);
  return () => {
    isSent.current = true;
    dropDraft(workflow);
  };
}

function countOf(count: number): string {
  return count === 1 ? "The workflow refuses this input" : `The workflow refuses this input, for ${count} reasons`;
}
