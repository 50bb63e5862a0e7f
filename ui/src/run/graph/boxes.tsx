/* boxes.tsx: what stands in the graph: a card for a step (or a closed supervisor), a frame for an open one. */
import { Handle, Position, type NodeProps } from "@xyflow/react";
import { createContext, useContext } from "react";
import type { RunNode } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { STATUS_LOOK, StatusIcon } from "../../parts/StatusBadge";
import { Duration } from "../../parts/Time";
import { attemptsOf, count, kindNameOf } from "../nodes/names";
import { progressShare, progressText } from "../nodes/progress";
import { descriptionOf, isSupervisor, priorityOf, sayingOf, type Box } from "../plan";
import { HEAD_H, type Side } from "./layout";

export interface GraphActions {
  select?: (key: string) => void;
  toggle: (box: Box) => void;
  pick?: (key: string) => void;
}

export const GraphContext = createContext<GraphActions>({ toggle: () => undefined });

interface BoxData {
  box: Box;
  node: RunNode | undefined;
  /** there is a run: what has no node is pending */
  live: boolean;
  iteration: { shown: number; of: number; latest: boolean } | undefined;
  selected: boolean;
}

const dataOf = (props: NodeProps) => props.data as unknown as BoxData;

/** Where edges that do not go down begin and end. */
export const handleAt = (type: "source" | "target", side: Side) => `${type} ${side}`;

const SIDES: Record<Side, Position> = { left: Position.Left, right: Position.Right, bottom: Position.Bottom };
const ENDS = ["source", "target"] as const;

function Handles({ box }: { box: Box }) {
  const scheduled = box.state || box.type === "stage" || box.type === "handler";
  // From stage to stage it goes along their heads.
  const style = box.type === "stage" ? { top: HEAD_H / 2 } : undefined;
  return (
    <>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
      {scheduled &&
        (["left", "right", "bottom"] as const).flatMap((side) =>
          ENDS.map((type) => (
            <Handle
              key={handleAt(type, side)}
              id={handleAt(type, side)}
              type={type}
              position={SIDES[side]}
              style={side === "bottom" ? undefined : style}
              isConnectable={false}
            />
          )),
        )}
    </>
  );
}

/** What the schedule says of a state. */
function StateMarks({ box }: { box: Box }) {
  if (!box.state) return null;
  return (
    <span className="box-marks">
      {box.state.critical && <span className="box-mark critical">critical</span>}
      {box.state.final && <span className="box-mark">final</span>}
      <span className="box-mark" title={`Priority ${priorityOf(box)}`}>
        <span className="sr-only">priority </span>
        {priorityOf(box)}
      </span>
    </span>
  );
}

/** Its name as a button, with everything in it that a screen reader needs. */
function Name({ box, node, live }: { box: Box; node: RunNode | undefined; live: boolean }) {
  const { select } = useContext(GraphContext);
  const status = node?.status ?? "pending";
  const text = (
    <>
      {live && <StatusIcon status={status} size={16} />}
      {live && <span className="sr-only">{STATUS_LOOK[status]?.name ?? status}: </span>}
      <span className="box-alias">{box.type === "handler" ? "on error" : box.alias}</span>
    </>
  );
  if (!select) return <span className="box-name">{text}</span>;
  return (
    <button className="box-name" onClick={() => select(box.key)}>
      {text}
    </button>
  );
}

function look(data: BoxData): string {
  const status = data.live ? (data.node?.status ?? "pending") : "plan";
  return `box status-${status}${data.selected ? " selected" : ""}`;
}

export function BoxCard(props: NodeProps) {
  const data = dataOf(props);
  const { box, node, live } = data;
  const { toggle } = useContext(GraphContext);
  const inner = isSupervisor(box);
  return (
    <div className={`${look(data)} box-card${inner ? " stacked" : ""}`}>
      <Handles box={box} />
      <div className="box-line">
        <Name box={box} node={node} live={live} />
        <StateMarks box={box} />
        {inner && (
          <button
            className="box-fold"
            aria-expanded={false}
            aria-label={`Open ${box.alias}`}
            onClick={() => toggle(box)}
          >
            <Icon name="plus" size={12} />
          </button>
        )}
      </div>
      <div className="box-line box-more">
        <span className="kind">{kindNameOf(undefined, box)}</span>
        <CardMore box={box} node={node} />
      </div>
    </div>
  );
}

function CardMore({ box, node }: { box: Box; node: RunNode | undefined }) {
  if (!node || node.status === "pending") {
    const text = box.state ? (box.state.agentId ?? "") : (descriptionOf(box) ?? sayingOf(box));
    return <span className="box-text">{text}</span>;
  }
  const attempts = attemptsOf(node);
  const text = node.status === "skipped" ? "skipped" : progressText(node) || (node.description ?? "");
  return (
    <>
      <span className="box-text">{text}</span>
      {attempts && (
        <span className="box-attempts" title={attempts}>
          <Icon name="retry" size={11} /> {node.crashes ? attempts : node.attempt}
          {!node.crashes && <span className="sr-only"> attempts</span>}
        </span>
      )}
      {node.startedAt !== undefined && <Duration from={node.startedAt} to={node.completedAt} />}
    </>
  );
}

export function BoxGroup(props: NodeProps) {
  const data = dataOf(props);
  const { box, node, live, iteration } = data;
  const { toggle, pick } = useContext(GraphContext);
  const share = node && progressShare(node);
  return (
    <div className={`${look(data)} box-group`}>
      <Handles box={box} />
      <div className="box-line box-head">
        <Name box={box} node={node} live={live} />
        <span className="kind">{kindNameOf(undefined, box)}</span>
        <StateMarks box={box} />
        <span className="box-text">{sayingOf(box)}</span>
        {node?.startedAt !== undefined && <Duration from={node.startedAt} to={node.completedAt} />}
        <button className="box-fold" aria-expanded={true} aria-label={`Close ${box.alias}`} onClick={() => toggle(box)}>
          <span aria-hidden="true">−</span>
        </button>
      </div>
      {(box.type === "forEach" || box.type === "loop") && (
        <div className="box-line box-pick">
          <span className="box-text">
            {iteration ? node && progressText(node) : live ? "no iteration yet" : "each iteration"}
          </span>
          {iteration && (
            <button className="box-iteration" onClick={() => pick?.(box.key)}>
              {iteration.latest
                ? `latest: #${count(iteration.shown + 1)}`
                : `#${count(iteration.shown + 1)} of ${count(iteration.of)}`}
              <Icon name="down" size={11} />
            </button>
          )}
          {share !== undefined && (
            <span className="box-progress" aria-hidden="true">
              <span style={{ width: `${share * 100}%` }} />
            </span>
          )}
        </div>
      )}
    </div>
  );
}

export function LaneTitle(props: NodeProps) {
  return <div className="lane-title">{(props.data as { text: string }).text}</div>;
}
