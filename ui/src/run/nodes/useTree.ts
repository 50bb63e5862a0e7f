/* useTree.ts: the nodes of the run as rows: which are open, which are here, which are wanted. */
import { useMemo, useState } from "react";
import type { RunNode } from "../../api/types";
import { rowAt, rowsOf, type OpenNode, type Rows } from "./rows";
import { useGoal, useWanted, useWindows } from "./shared";
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
  /** the row to be seen first: of the node that is looked at, or that failed, as soon as it is here */
  goal: { path: string; row: number } | undefined;
  loading: boolean;
  error: unknown;
}

/** Ways that stay open, of those that were gone. */
const WAYS = 20;

const STAYS_CLOSED = ["forEach", "loop", "iteration"];

const opensByItself = (node: RunNode, depth: number) =>
  depth < OPEN_DEPTH &&
  (node.children ?? 0) > 0 &&
  node.children! <= OPEN_CHILDREN &&
  !STAYS_CLOSED.includes(node.kind) &&
  node.status !== "skipped";

/** The iteration of `parent` that the way to `path` goes through, if its place is told by its number. */
function iterationIn(parent: string, path: string): { path: string; parent: string; index: number } | undefined {
  if (parent === "" || !path.startsWith(`${parent}:iter`)) return undefined;
  const match = /^iter(\d+)(?=:|$)/.exec(path.slice(parent.length + 1));
  return match ? { path: `${parent}:${match[0]}`, parent, index: Number(match[1]) } : undefined;
}

/** The goals so far, the newest last: what was unfolded stays so. */
function useGoals(goal: string | null): readonly string[] {
  const [goals, setGoals] = useState<readonly string[]>([]);
  if (goal === null || goals.includes(goal)) return goals;
  const next = [...goals.slice(1 - WAYS), goal];
  setGoals(next);
  return next;
}

export function useTree(): Tree {
  const windows = useWindows();
  const [toggled, setToggled] = useState<ReadonlyMap<string, Toggled>>(new Map());
  const [shown, setShown] = useState({ first: 0, last: 40 });
  const goal = useGoal();
  const goals = useGoals(goal);

  const byParent = useMemo(() => {
    const map = new Map<string, Toggled[]>();
    for (const each of toggled.values()) {
      const list = map.get(each.parent);
      if (list) list.push(each);
      else map.set(each.parent, [each]);
    }
    return map;
  }, [toggled]);

  function openIn(parent: string, depth: number): OpenNode[] {
    const open: OpenNode[] = (byParent.get(parent) ?? []).filter((each) => each.open);
    const listed = new Set(open.map((each) => each.index));
    const add = (path: string, index: number) => {
      if (toggled.has(path) || listed.has(index)) return;
      listed.add(index);
      open.push({ path, index });
    };
    windows.window(parent)?.nodes.forEach((node, index) => {
      if (opensByItself(node, depth) || goals.some((each) => each.startsWith(`${node.path}:`))) add(node.path, index);
    });
    // An iteration may be far down, where nobody has looked yet.
    for (const each of goals) {
      const iteration = iterationIn(parent, each);
      if (iteration !== undefined && each.length > iteration.path.length && isAt(iteration))
        add(iteration.path, iteration.index);
    }
    return open.sort((a, b) => a.index - b.index);
  }
  const isAt = ({ path, parent, index }: { path: string; parent: string; index: number }) =>
    windows.at(parent, index)?.path === path;
  const rows = rowsOf((parent) => windows.total(parent) ?? 0, openIn);

  function row(number: number): TreeRow | undefined {
    const at = rowAt(rows, number);
    if (!at) return undefined;
    const node = windows.at(at.parent, at.index);
    const open =
      node !== undefined &&
      (toggled.get(node.path)?.open ??
        (opensByItself(node, at.depth) || goals.some((each) => each.startsWith(`${node.path}:`))));
    return { ...at, number, node, open };
  }

  /** The row of a node whose parents are open. */
  function rowOf(path: string): number | undefined {
    for (const piece of rows.pieces) {
      if (!path.startsWith(piece.parent && `${piece.parent}:`)) continue;
      for (let i = 0; i < piece.count; i++) {
        const page = Math.floor((piece.from + i) / PAGE);
        if (windows.window(piece.parent, page) === undefined) {
          i = (page + 1) * PAGE - piece.from - 1;
          continue;
        }
        if (windows.at(piece.parent, piece.from + i)?.path === path) return piece.start + i;
      }
    }
    return undefined;
  }
  const goalRow = goal === null ? undefined : rowOf(goal);

  const wanted = new Map<string, WindowKey>();
  const want = (parent: string, page: number) => wanted.set(`${page} ${parent}`, { parent, page });
  for (const parent of rows.parents) {
    want(parent, 0);
    const iteration = goal === null ? undefined : iterationIn(parent, goal);
    if (iteration !== undefined && iteration.index < (windows.total(parent) ?? 0))
      want(parent, Math.floor(iteration.index / PAGE));
  }
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
    goal: goal !== null && goalRow !== undefined ? { path: goal, row: goalRow } : undefined,
    loading: windows.total("") === undefined && windows.error("") === undefined,
    error: windows.total("") === undefined ? windows.error("") : undefined,
  };
}
