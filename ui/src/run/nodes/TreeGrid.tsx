/* TreeGrid.tsx: nodes as rows that open, as many as are seen; the lane beside the names is the caller's.
 * A tree grid as ARIA has it: one stop for Tab, then the arrow keys. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from "react";
import type { RunNode } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { STATUS_LOOK, StatusIcon } from "../../parts/StatusBadge";
import { boxAt, type Box } from "../plan";
import { aboutOf, count, kindNameOf, nameOf } from "./names";
import { ownerRow } from "./rows";
import type { RunPlan } from "./shared";
import type { Tree, TreeRow } from "./useTree";

export const ROW_PX = 36;
const OVERSCAN = 8;
/** Worth a list of their own; the completed are all others. */
const CHIPS = ["failed", "running", "cancelled"] as const;

export interface TreeGridProps {
  label: string;
  tree: Tree;
  plan: RunPlan;
  selected: string | null;
  onSelect: (path: string) => void;
  head: ReactNode;
  cells: (node: RunNode, box: Box | undefined) => ReactNode;
  className: string;
  /** of what scrolls */
  scroller: RefObject<HTMLDivElement | null>;
  /** drawn behind the rows */
  ground?: ReactNode;
}

export function TreeGrid({
  label,
  tree,
  plan,
  selected,
  onSelect,
  head,
  cells,
  className,
  scroller,
  ground,
}: TreeGridProps) {
  const [active, setActive] = useState(0);
  /** the row that gets the focus once it is drawn */
  const focusing = useRef<number | null>(null);
  const { rows } = tree;
  const virtual = useVirtualizer({
    count: rows.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const { show } = tree;
  useEffect(() => show(first, last));

  // Once for each goal: the way there is being opened, and its row moves until it is.
  const aimed = useRef<string | null>(null);
  const goal = tree.goal;
  useEffect(() => {
    if (!goal || aimed.current === goal.path) return;
    aimed.current = goal.path;
    virtual.scrollToIndex(goal.row, { align: "auto" });
    setActive(goal.row);
  }, [goal, virtual]);

  const current = Math.min(active, Math.max(0, rows.count - 1));
  useEffect(() => {
    if (focusing.current !== current) return;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-row="${current}"]`);
    if (row) {
      focusing.current = null;
      row.focus({ preventScroll: true });
    }
  });

  function go(number: number) {
    const to = Math.min(rows.count - 1, Math.max(0, number));
    focusing.current = to;
    setActive(to);
    virtual.scrollToIndex(to);
  }
  function press(event: KeyboardEvent, row: TreeRow) {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_PX) - 2);
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(row.number + 1),
      ArrowUp: () => go(row.number - 1),
      PageDown: () => go(row.number + page),
      PageUp: () => go(row.number - page),
      Home: () => go(0),
      End: () => go(rows.count - 1),
      ArrowRight: () => (row.open ? go(row.number + 1) : tree.toggle(row, true)),
      ArrowLeft: () => {
        if (row.open) tree.toggle(row, false);
        else if (row.depth > 0) go(ownerRow(rows, row.parent));
      },
      Enter: () => row.node && onSelect(row.node.path),
      " ": () => row.node && onSelect(row.node.path),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  return (
    <div className={`card tree-grid ${className}`} ref={scroller}>
      <div role="treegrid" aria-label={label} aria-rowcount={rows.count + 1} className="tree-body">
        <div role="row" aria-rowindex={1} className="tree-row tree-head">
          {head}
        </div>
        <div role="rowgroup" className="tree-rows" style={{ height: virtual.getTotalSize() }}>
          {ground}
          {items.map((item) => {
            const row = tree.row(item.index);
            if (!row) return null;
            const box = row.node && boxAt(plan.boxes, row.node.path);
            return (
              <div
                key={item.key}
                role="row"
                data-row={item.index}
                aria-rowindex={item.index + 2}
                aria-level={row.depth + 1}
                aria-posinset={row.index + 1}
                aria-setsize={row.of}
                aria-expanded={row.node?.children ? row.open : undefined}
                aria-selected={row.node !== undefined && row.node.path === selected}
                tabIndex={item.index === current ? 0 : -1}
                className={`tree-row status-${row.node?.status ?? "pending"}`}
                style={{ transform: `translateY(${item.start}px)` }}
                onFocus={() => setActive(item.index)}
                onKeyDown={(event) => press(event, row)}
                onClick={() => row.node && onSelect(row.node.path)}
              >
                <NameCell row={row} box={box} tree={tree} />
                {row.node && cells(row.node, box)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function NameCell({ row, box, tree }: { row: TreeRow; box: Box | undefined; tree: Tree }) {
  const { node } = row;
  return (
    <span role="rowheader" className="tree-name">
      <span className="tree-indent" style={{ width: `${row.depth * 1.1}rem` }} />
      {node?.children ? (
        <button
          className={row.open ? "tree-fold open" : "tree-fold"}
          tabIndex={-1}
          aria-label={`${row.open ? "Close" : "Open"} ${nameOf(node)}`}
          onClick={(event) => {
            event.stopPropagation();
            tree.toggle(row);
          }}
        >
          <Icon name="chevron" size={12} />
        </button>
      ) : (
        <span className="tree-fold" />
      )}
      {node ? (
        <>
          <StatusIcon status={node.status} size={15} />
          <span className="sr-only">{STATUS_LOOK[node.status]?.name ?? node.status}: </span>
          <span className="tree-alias">{nameOf(node)}</span>
          {aboutOf(node) && <span className="tree-about">· {aboutOf(node)}</span>}
          {node.kind !== "iteration" && <span className="kind">{kindNameOf(node, box)}</span>}
          {node.iterations && <IterationChips node={node} row={row} tree={tree} />}
          {node.description && <span className="tree-description muted">{node.description}</span>}
        </>
      ) : (
        <span className="muted">…</span>
      )}
    </span>
  );
}

/** Which iterations are listed below. Keys reach the same on the node's card. */
function IterationChips({ node, row, tree }: { node: RunNode; row: TreeRow; tree: Tree }) {
  const listed = tree.windows.statusOf(node.path);
  const chips = CHIPS.filter((each) => each === listed || (node.iterations?.[each] ?? 0) > 0);
  return chips.map((each) => (
    <button
      key={each}
      type="button"
      tabIndex={-1}
      className={`chip status-${each}`}
      aria-pressed={each === listed}
      aria-label={`Only ${each} iterations of ${nameOf(node)}`}
      onClick={(event) => {
        event.stopPropagation();
        tree.windows.list(node.path, each === listed ? undefined : each);
        if (!row.open) tree.toggle(row, true);
      }}
    >
      {each} {count(node.iterations?.[each] ?? 0)}
    </button>
  ));
}
