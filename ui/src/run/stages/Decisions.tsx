/* Decisions.tsx: what waits for a decision, each with what it said and left, and its buttons; of several, those
 * that are marked are decided at once, path by path. */
import { useId, useState, type FormEvent } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../../api/client";
import type { Decision, Run, Suspension } from "../../api/types";
import { runPath } from "../../app/paths";
import { useMayOperate } from "../../app/session";
import { Dialog } from "../../parts/Dialog";
import { Icon } from "../../parts/Icon";
import { Duration } from "../../parts/Time";
import { StateAttachments } from "../attachments/StateAttachments";
import { count } from "../nodes/names";
import { NodeLog } from "../nodes/NodeLog";
import { useRunPlan } from "../nodes/shared";
import { boxAt, wayText } from "../plan";
import { tabIn } from "../tabNames";
import { useTell } from "../tell";
import "../nodes/nodes.css";
import "./stages.css";

/** So many are listed; the others wait until these are decided. */
const LISTED = 50;

const ACTIONS: Record<Decision, { name: string; done: string; does: string; button: string; danger?: true }> = {
  resume: {
    name: "Resume",
    done: "Resumed",
    does: "It is attempted again, and waits for a decision again if nothing has changed.",
    button: "Resume the run",
  },
  skip: {
    name: "Skip",
    done: "Skipped",
    does: "It is recorded as failed and the stage goes on; states that depend on it get its error as the value.",
    button: "Skip it",
  },
  restart_stage: {
    name: "Restart stage",
    done: "Restarted the stage of",
    does: "The results of the whole stage are superseded, and all of its states run again.",
    button: "Restart the stage",
  },
  abort: {
    name: "Abort",
    done: "Aborted",
    does: "The run fails, and its onError is called.",
    button: "Abort the run",
    danger: true,
  },
};
const ORDER: Decision[] = ["resume", "skip", "restart_stage", "abort"];

interface Asking {
  action: Decision;
  of: Suspension[];
}

const keyOf = (suspension: Suspension) => suspension.path ?? "";

export function Decisions({ run }: { run: Run }) {
  const mayOperate = useMayOperate();
  const all = run.suspensions ?? [];
  const listed = all.slice(0, LISTED);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<Asking | null>(null);
  const chosen = listed.filter((each) => marked.has(keyOf(each)));
  const mark = (path: string, on: boolean) => {
    const next = new Set(marked);
    if (on) next.add(path);
    else next.delete(path);
    setMarked(next);
  };
  const several = listed.length > 1;
  return (
    <div className="decisions">
      <h2 className="sr-only">Waits for a decision</h2>
      {several && (
        <div className="decisions-bar">
          <strong>{count(all.length)} wait for a decision</strong>
          {mayOperate && (
            <>
              <label className="check">
                <input
                  type="checkbox"
                  checked={chosen.length === listed.length}
                  onChange={(event) => setMarked(new Set(event.target.checked ? listed.map(keyOf) : []))}
                />{" "}
                all
              </label>
              {chosen.length > 0 && (
                <span className="actions" role="group" aria-label="Decide for those that are marked">
                  <span className="muted">{count(chosen.length)} marked:</span>
                  <Buttons
                    actions={ORDER.filter((action) => chosen.every((each) => each.actions.includes(action)))}
                    ask={(action) => setAsking({ action, of: chosen })}
                  />
                </span>
              )}
            </>
          )}
        </div>
      )}
      {listed.map((each) => (
        <One
          key={keyOf(each)}
          run={run}
          suspension={each}
          open={!several}
          marked={several && mayOperate ? marked.has(keyOf(each)) : undefined}
          onMark={(on) => mark(keyOf(each), on)}
          ask={mayOperate ? (action) => setAsking({ action, of: [each] }) : undefined}
        />
      ))}
      {all.length > listed.length && <p className="muted">and {count(all.length - listed.length)} more</p>}
      <DecideDialog
        run={run}
        asking={asking}
        onClose={() => {
          setAsking(null);
          setMarked(new Set());
        }}
      />
    </div>
  );
}

function Buttons({ actions, ask }: { actions: Decision[]; ask: (action: Decision) => void }) {
  return ORDER.filter((action) => actions.includes(action)).map((action) => (
    <button
      key={action}
      type="button"
      className={`button small${action === "resume" ? " primary" : ""}${ACTIONS[action].danger ? " danger" : ""}`}
      onClick={() => ask(action)}
    >
      {ACTIONS[action].name}…
    </button>
  ));
}

/** One suspension: of a node, or, without a path, of the run as a whole. */
function One({
  run,
  suspension,
  open,
  marked,
  onMark,
  ask,
}: {
  run: Run;
  suspension: Suspension;
  open: boolean;
  marked: boolean | undefined;
  onMark: (on: boolean) => void;
  ask: ((action: Decision) => void) | undefined;
}) {
  const { plan } = useRunPlan();
  const [location] = useLocation();
  const { path } = suspension;
  const name = path === undefined ? "the run" : wayText(plan.boxes, path);
  const [isOpen, setOpen] = useState(open);
  const box = path === undefined ? undefined : boxAt(plan.boxes, path);
  return (
    <section className="decision" aria-label={`Decide about ${name}`}>
      <div className="decision-line">
        {marked !== undefined && (
          <input
            type="checkbox"
            checked={marked}
            onChange={(event) => onMark(event.target.checked)}
            aria-label={`Mark ${name}`}
          />
        )}
        {ask && (
          <span className="actions wait-actions">
            <Buttons actions={suspension.actions} ask={ask} />
          </span>
        )}
        <span className="wait-icon">
          <Icon name="question" />
        </span>
        <span className="decision-text">
          {path !== undefined && (
            <>
              <Link href={runPath(run.runId, `/${tabIn(location)}?${new URLSearchParams({ node: path }).toString()}`)}>
                {name}
              </Link>
              {": "}
            </>
          )}
          {suspension.reason.message}
          <span className="muted wait-times">
            for <Duration from={suspension.since} to={undefined} />
          </span>
        </span>
      </div>
      {path !== undefined && (
        <details className="decision-more" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{box?.state ? "Log and attachment" : "Log"}</summary>
          {isOpen && (
            <div className="decision-inspect">
              <NodeLog path={path} fatal="last" />
              {box?.state && <StateAttachments path={path} />}
            </div>
          )}
        </details>
      )}
    </section>
  );
}

function DecideDialog({ run, asking, onClose }: { run: Run; asking: Asking | null; onClose: () => void }) {
  const many = (asking?.of.length ?? 0) > 1;
  const action = asking && ACTIONS[asking.action];
  return (
    <Dialog
      open={asking !== null}
      onClose={onClose}
      title={action ? `${action.name}${many ? `: ${count(asking.of.length)} nodes` : ""}?` : ""}
    >
      {asking && <DecideForm run={run} asking={asking} onClose={onClose} />}
    </Dialog>
  );
}

function DecideForm({ run, asking, onClose }: { run: Run; asking: Asking; onClose: () => void }) {
  const ids = useId();
  const { plan } = useRunPlan();
  const [reason, setReason] = useState("");
  const { busy, refusal, tell } = useTell();
  const { action, of } = asking;
  const words = ACTIONS[action];
  const nameOf = ({ path }: Suspension) => (path === undefined ? run.runId : wayText(plan.boxes, path));

  async function submit(event: FormEvent) {
    event.preventDefault();
    const said = reason.trim();
    const all = async () => {
      for (const { path } of of) await api.decide(run.runId, { action, path, ...(said && { reason: said }) });
    };
    if (await tell(all, `${words.done} ${of.length === 1 ? nameOf(of[0]!) : `${count(of.length)} nodes`}`)) onClose();
  }
  return (
    <form onSubmit={(event) => void submit(event)}>
      <p>{words.does}</p>
      <p className="muted">{of.map(nameOf).join(", ")}</p>
      <div className="field">
        <label htmlFor={ids}>Reason, for the record (may be left empty)</label>
        <input id={ids} value={reason} onChange={(event) => setReason(event.target.value)} />
      </div>
      <div role="alert" className="field-error">
        {refusal}
      </div>
      <div className="actions">
        <button type="button" className="button" onClick={onClose}>
          Not now
        </button>
        <button className={words.danger ? "button danger primary" : "button primary"} disabled={busy}>
          {words.button}
        </button>
      </div>
    </form>
  );
}
