/* Iterations.tsx: choose the iteration that the graph shows, of however many there are. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useState } from "react";
import type { RunNode } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { STATUS_LOOK, StatusIcon } from "../../parts/StatusBadge";
import { Duration } from "../../parts/Time";
import { iterationOf, nameOf } from "../nodes/names";
import { progressText } from "../nodes/progress";
import { useWanted, useWindows } from "../nodes/shared";
import { PAGE } from "../nodes/windows";

const ROW_PX = 34;

interface Props {
  owner: RunNode;
  shown: number | undefined;
  onClose: () => void;
  /** null: always the latest */
  onPick: (iteration: number | null) => void;
}

export function Iterations({ owner, shown, onClose, onPick }: Props) {
  return (
    <Dialog open onClose={onClose} title={`Iterations of ${owner.alias}`}>
      <p className="muted">{progressText(owner)}</p>
      <List owner={owner} shown={shown} onPick={onPick} />
      <div className="actions">
        <button className="button" onClick={() => onPick(null)}>
          Follow the latest
        </button>
      </div>
    </Dialog>
  );
}

function List({ owner, shown, onPick }: Omit<Props, "onClose">) {
  const windows = useWindows();
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const total = windows.total(owner.path) ?? owner.children ?? 0;
  const virtual = useVirtualizer({ count: total, getScrollElement: () => scroller, estimateSize: () => ROW_PX, overscan: 5 });
  const items = virtual.getVirtualItems();
  const pages = new Set([0, ...items.map((item) => Math.floor(item.index / PAGE))]);
  useWanted(
    windows,
    [...pages].map((page) => ({ parent: owner.path, page })),
  );
  useEffect(() => {
    if (scroller && shown !== undefined) virtual.scrollToIndex(shown, { align: "center" });
    // where it begins, once
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [scroller]);
  return (
    <div className="iterations" ref={setScroller} tabIndex={-1}>
      <ul style={{ height: virtual.getTotalSize() }} aria-label="Iterations">
        {items.map((item) => {
          const node = windows.at(owner.path, item.index);
          return (
            <li key={item.key} style={{ transform: `translateY(${item.start}px)` }} aria-posinset={item.index + 1} aria-setsize={total}>
              {node ? (
                <button className="iteration" aria-current={iterationOf(node.alias) === shown ? "true" : undefined} onClick={() => onPick(iterationOf(node.alias))}>
                  <StatusIcon status={node.status} size={14} />
                  <span>{nameOf(node)}</span>
                  <span className="muted">{STATUS_LOOK[node.status]?.name ?? node.status}</span>
                  <Duration from={node.startedAt} to={node.completedAt} />
                </button>
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
