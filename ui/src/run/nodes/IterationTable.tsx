/* IterationTable.tsx: the iterations of a forEach or a loop, however many there are: those of one status, or
 * all, with what each took and why it failed. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useId, useMemo, useState, useSyncExternalStore, type FormEvent } from "react";
import { api } from "../../api/client";
import type { NodeStatus, RunNode } from "../../api/types";
import { lastLine } from "../../parts/lastLine";
import { STATUS_LOOK, StatusIcon } from "../../parts/StatusBadge";
import { Duration } from "../../parts/Time";
import { useRunEvents, useRunLive } from "../live";
import { aboutOf, count, iterationOf, nameOf } from "./names";
import { useWanted } from "./shared";
import { NodeWindows, PAGE } from "./windows";

const ROW_PX = 34;
const CHIPS = ["failed", "running", "completed", "cancelled"] as const;
type Chip = (typeof CHIPS)[number];

interface Props {
  owner: RunNode;
  /** the one that is marked, and where the list begins */
  shown?: number;
  onPick: (iteration: number) => void;
}

export function IterationTable({ owner, shown, onPick }: Props) {
  const failed = owner.iterations?.failed ?? 0;
  const [chip, setChip] = useState<Chip | "all">(failed > 0 ? "failed" : "all");
  const [asked, setAsked] = useState<number>();
  const field = useId();
  const chips = CHIPS.map((each) => [each, owner.iterations?.[each] ?? 0] as const).filter(
    ([each, n]) => n > 0 || each === chip,
  );

  function go(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const wanted = Number(new FormData(event.currentTarget).get("number"));
    const last = (owner.children ?? 0) - 1;
    if (!Number.isInteger(wanted) || wanted < 1 || last < 0) return;
    setChip("all");
    setAsked(Math.min(wanted - 1, last));
  }

  return (
    <div className="iteration-table">
      <div className="iteration-tools">
        <div className="chips" role="group" aria-label="Iterations to show">
          <button type="button" className="chip" aria-pressed={chip === "all"} onClick={() => setChip("all")}>
            all {count(owner.children ?? 0)}
          </button>
          {chips.map(([each, n]) => (
            <button
              key={each}
              type="button"
              className={`chip status-${each}`}
              aria-pressed={chip === each}
              onClick={() => setChip(each)}
            >
              {each} {count(n)}
            </button>
          ))}
        </div>
        <form className="iteration-go" onSubmit={go}>
          <label htmlFor={field}>Go to</label>
          <input id={field} name="number" type="number" min={1} max={owner.children} inputMode="numeric" />
          <button className="button small">Go</button>
        </form>
      </div>
      <List
        key={chip}
        owner={owner}
        status={chip === "all" ? undefined : chip}
        shown={asked ?? shown}
        onPick={onPick}
      />
    </div>
  );
}

/** Windows on the children of one status, kept fresh. */
function useOfStatus(status: NodeStatus | undefined): NodeWindows {
  const { runId } = useRunLive();
  const windows = useMemo(
    () => new NodeWindows({ load: (parent, offset, limit) => api.nodes(runId, { parent, status, offset, limit }) }),
    [runId, status],
  );
  useRunEvents({ onEvents: (events) => windows.events(events), onOpen: () => windows.invalidate() });
  useSyncExternalStore(windows.subscribe, windows.getVersion);
  return windows;
}

function List({ owner, status, shown, onPick }: Props & { status: NodeStatus | undefined }) {
  const windows = useOfStatus(status);
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const total = windows.total(owner.path) ?? (status === undefined ? owner.children : 0) ?? 0;
  const virtual = useVirtualizer({
    count: total,
    getScrollElement: () => scroller,
    estimateSize: () => ROW_PX,
    overscan: 5,
  });
  const items = virtual.getVirtualItems();
  const pages = new Set([0, ...items.map((item) => Math.floor(item.index / PAGE))]);
  useWanted(
    windows,
    [...pages].map((page) => ({ parent: owner.path, page })),
  );
  useEffect(() => {
    if (scroller && shown !== undefined && status === undefined) virtual.scrollToIndex(shown, { align: "center" });
    // where it begins, and where somebody asks for
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [scroller, shown, status]);
  if (windows.total(owner.path) === 0) return <p className="muted">None.</p>;
  return (
    <div className="iterations" ref={setScroller} tabIndex={-1}>
      <ul style={{ height: virtual.getTotalSize() }} aria-label="Iterations">
        {items.map((item) => {
          const node = windows.at(owner.path, item.index);
          return (
            <li
              key={item.key}
              style={{ transform: `translateY(${item.start}px)` }}
              aria-posinset={item.index + 1}
              aria-setsize={total}
            >
              {node ? (
                <Iteration node={node} isShown={iterationOf(node.alias) === shown} onPick={onPick} />
              ) : (
                <span className="iteration muted">…</span>
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Iteration({
  node,
  isShown,
  onPick,
}: {
  node: RunNode;
  isShown: boolean;
  onPick: (iteration: number) => void;
}) {
  return (
    <button
      type="button"
      className="iteration"
      aria-current={isShown ? "true" : undefined}
      onClick={() => onPick(iterationOf(node.alias))}
    >
      <StatusIcon status={node.status} size={14} />
      <span>{nameOf(node)}</span>
      <span className="iteration-item" title={aboutOf(node)}>
        {aboutOf(node)}
      </span>
      <span className="muted">{STATUS_LOOK[node.status]?.name ?? node.status}</span>
      <Duration from={node.startedAt} to={node.completedAt} />
      <span className="iteration-error">{node.error ? lastLine(node.error.message) : ""}</span>
    </button>
  );
}
