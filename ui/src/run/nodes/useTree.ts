/* useTree.ts: the nodes of the run as rows: which are open, which are here, which are wanted. */
import { useMemo, useState } from "react";
import type { RunNode } from "../../api/types";
import { rowAt, rowsOf, type OpenNode, type Rows } from "./rows";
import { useWanted, useWindows } from "./shared";
import { PAGE, type NodeWindows, type WindowKey } from "./windows";

/** Small sequences are open from the start, so far down. */
const OPEN_CHILDREN = 20;
const OPEN_DEPTH = 2;

interface Toggled extends OpenNode {
  parent: string;
  open: boolean;
}

export interface TreeRow {
  number: number;
  depth: number;
  parent: string;
  index: number;
  /** of how many */
  of: number;
  /** undefined: it is on its way */
  node: RunNode | undefined;
  open: boolean;
}

export interface Tree {
  windows: NodeWindows;
  rows: Rows;
  row: (number: number) => TreeRow | undefined;
  toggle: (row: TreeRow, open?: boolean) => void;
  /** These rows are on the screen. */
  show: (first: number, last: number) => void;
  shown: { first: number; last: number };
  loading: boolean;
  error: unknown;
}

const STAYS_CLOSED = ["forEach", "loop", "iteration"];

const opensByItself = (node: RunNode, depth: number) =>
  depth < OPEN_DEPTH && (node.children ?? 0) > 0 && node.children! <= OPEN_CHILDREN && !STAYS_CLOSED.includes(node.kind) && node.status !== "skipped";

export function useTree(): Tree {
  const windows = useWindows();
  const [toggled, setToggled] = useState<ReadonlyMap<string, Toggled>>(new Map());
  const [shown, setShown] = useState({ first: 0, last: 40 });

  const byParent = useMemo(() => {
    const map = new Map<string, Toggled[]>();
    for (const each of toggled.values()) {
      const list = map.get(each.parent);
      if (list) list.push(each);
      else map.set(each.parent, [each]);
    };
    return map;
  }, [toggled]);

  function openIn(parent: string, depth: number): OpenNode[] {
    const open: OpenNode[] = (byParent.get(parent) ?? []).filter((each) => each.open);
    windows.window(parent)?.nodes.forEach((node, index) => {
      if (opensByItself(node, depth) && !toggled.has(node.path)) open.push({ path: node.path, index });
    });
    return open.sort((a, b) => a.index - b.index);
  }
  const rows = rowsOf((parent) => windows.total(parent) ?? 0, openIn);

  function row(number: number): TreeRow | undefined {
    const at = rowAt(rows, number);
    if (!at) return undefined;
    const node = windows.at(at.parent, at.index);
    const open = node !== undefined && (toggled.get(node.path)?.open ?? opensByItself(node, at.depth));
    return { ...at, number, node, open };
  }

  const wanted = new Map<string, WindowKey>();
  const want = (parent: string, page: number) => wanted.set(`${page} ${parent}`, { parent, page });
  for (const parent of rows.parents) want(parent, 0);
  for (let number = shown.first; number <= shown.last; number++) {
    const at = rowAt(rows, number);
    if (at) want(at.parent, Math.floor(at.index / PAGE));
  }
  useWanted(windows, [...wanted.values()]);

  return {
    windows,
    rows,
    row,
    toggle({ node, parent, index, open: was }, open = !was) {
      if (node) setToggled(new Map(toggled).set(node.path, { path: node.path, parent, index, open }));
    },
    show(first, last) {
      if (first !== shown.first || last !== shown.last) setShown({ first, last });
    },
    shown,
    loading: windows.total("") === undefined && windows.error("") === undefined,
    error: windows.total("") === undefined ? windows.error("") : undefined,
  };
}
