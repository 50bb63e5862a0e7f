/* StageBoard.tsx: the schedule of the stage that is under way: its ready queue, its pool, what has settled. */
import { StatusIcon } from "../../parts/StatusBadge";
import type { RunNode } from "../../api/types";
import { count } from "../nodes/names";
import { useRunPlan, useSelected, useWanted, useWindows } from "../nodes/shared";
import { PAGE, type WindowKey } from "../nodes/windows";
import { priorityOf, type Box } from "../plan";
import { scheduleOf } from "./schedule";
import "./stages.css";

/** States of a stage that are looked at; of a larger one the rest is in the tab Nodes. */
const MOST = 1000;
/** So many are named in one list. */
const NAMED = 8;

/** The stage that is under way, else the last that has begun, else the first. */
function currentOf(stages: Box[], nodeOf: (key: string) => RunNode | undefined): Box | undefined {
  return (
    stages.find((box) => ["running", "suspended"].includes(nodeOf(box.key)?.status ?? "")) ??
    stages.findLast((box) => nodeOf(box.key)?.startedAt !== undefined) ??
    stages[0]
  );
}

export function StageBoard() {
  const { plan } = useRunPlan();
  const windows = useWindows();
  const stages = plan.top.filter((box) => box.type === "stage");
  const byPath = new Map<string, RunNode>();
  for (let page = 0; page * PAGE < plan.top.length; page++)
    for (const node of windows.window("", page)?.nodes ?? []) byPath.set(node.path, node);
  const stage = currentOf(stages, (key) => byPath.get(key));
  const size = stage?.lanes.length ?? 0;
  const wanted: WindowKey[] = [];
  for (let page = 0; stage && page * PAGE < Math.min(size, MOST); page++) {
    wanted.push({ parent: stage.key, page });
    for (const node of windows.window(stage.key, page)?.nodes ?? []) byPath.set(node.path, node);
  }
  useWanted(windows, wanted);
  if (!stage || windows.total(stage.key) === undefined) return null;
  const nodeOf = (key: string) => byPath.get(key);
  const { blocked, ready, running, settled } = scheduleOf(stage, nodeOf);
  const places = stage.node.concurrency;
  return (
    <section className="card stage-board" aria-label={`Schedule of the stage ${stage.alias}`}>
      <h2 className="stage-board-title">
        {stage.alias}
        <span className="muted">
          stage {stages.indexOf(stage) + 1} of {stages.length}
          {size > MOST && `, its first ${count(MOST)} of ${count(size)} states`}
        </span>
      </h2>
      <States title="Blocked" hint="by others" states={blocked} nodeOf={nodeOf} />
      <States title="Ready" hint="by priority" states={ready} nodeOf={nodeOf} priority />
      <States title="In the pool" hint={places ? `of ${places}` : "no limit"} states={running} nodeOf={nodeOf} />
      <States title="Settled" hint="latest first" states={[...settled].reverse()} nodeOf={nodeOf} />
    </section>
  );
}

function States({
  title,
  hint,
  states,
  nodeOf,
  priority,
}: {
  title: string;
  hint: string;
  states: Box[];
  nodeOf: (key: string) => RunNode | undefined;
  priority?: true;
}) {
  const [, select] = useSelected();
  return (
    <div className="stage-list" role="group" aria-label={title}>
      <h3>
        {title} <span className="stage-count">{count(states.length)}</span> <span className="muted">{hint}</span>
      </h3>
      <ul>
        {states.slice(0, NAMED).map((box) => (
          <li key={box.key}>
            <button className="stage-state" onClick={() => select(box.key)}>
              <StatusIcon status={nodeOf(box.key)?.status ?? "pending"} size={13} />
              {box.alias}
              {priority && <span className="muted tabular">{priorityOf(box)}</span>}
            </button>
          </li>
        ))}
        {states.length > NAMED && <li className="muted">and {count(states.length - NAMED)} more</li>}
        {states.length === 0 && <li className="muted">none</li>}
      </ul>
    </div>
  );
}
