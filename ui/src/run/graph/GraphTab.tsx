/* GraphTab.tsx: the run's plan as a graph, coloured by what happens.
 *
 * Of a loop one iteration is shown: the one that was picked, else the one that leads to the node that is
 * looked at, or that failed, else the latest. So every box stands for one
 * node of the run, and what has to be known is in proportion to the plan, not to the run. */
import { useMemo, useState } from "react";
import type { RunNode } from "../../api/types";
import { Failure } from "../../parts/Failure";
import { Loading } from "../../parts/Loading";
import { NodeSplit } from "../nodes/NodeSplit";
import { useGoal, useRunPlan, useSelected, useWanted, useWindows, type RunPlan } from "../nodes/shared";
import { PAGE, type NodeWindows, type WindowKey } from "../nodes/windows";
import { boxAt, hasStages, isIterated, isSupervisor, wayTo, type Box } from "../plan";
import { StageBoard } from "../stages/StageBoard";
import { Iterations } from "./Iterations";
import { PlanGraph, useOpenness } from "./PlanGraph";

export function GraphTab() {
  const { plan, error, loading, retry } = useRunPlan();
  if (error) return <Failure error={error} retry={retry} />;
  if (loading) return <Loading what="the plan" />;
  return <RunGraph plan={plan} />;
}

function RunGraph({ plan }: { plan: RunPlan }) {
  const windows = useWindows();
  const [selected, select] = useSelected();
  const [chosen, setChosen] = useState<ReadonlyMap<string, number | null>>(new Map());
  const [picking, setPicking] = useState<string | null>(null);
  const goal = useGoal();
  const { picked, open } = useMemo(() => {
    const way = goal === null ? [] : wayTo(plan.boxes, goal);
    const picked = new Map<string, number>();
    for (const { box, iteration } of way) if (iteration !== undefined) picked.set(box.key, iteration);
    for (const [key, iteration] of chosen) {
      if (iteration === null) picked.delete(key);
      else picked.set(key, iteration);
    }
    return { picked, open: new Set(way.slice(0, -1).map(({ box }) => box.key)) };
  }, [plan, goal, chosen]);
  const openness = useOpenness(plan.top, open);

  const seen = look(windows, plan.top, openness.isOpen, picked);
  useWanted(windows, seen.wanted);
  const picks = picking !== null ? seen.nodes.get(picking) : undefined;

  if (windows.total("") === undefined)
    return windows.error("") ? (
      <Failure error={windows.error("")} retry={() => windows.invalidate()} />
    ) : (
      <Loading what="the nodes" />
    );
  return (
    <NodeSplit>
      {hasStages(plan.top) && <StageBoard />}
      <PlanGraph
        label="Graph of the run. The tab Nodes has the same as a tree."
        top={plan.top}
        openness={openness}
        nodeOf={(key) => seen.nodes.get(key)}
        selected={selected === null ? undefined : boxAt(plan.boxes, selected)?.key}
        onSelect={(key) => {
          const node = seen.nodes.get(key);
          if (node) select(node.path);
        }}
        iterationOf={(key) => {
          const shown = seen.iterations.get(key);
          return shown === undefined
            ? undefined
            : { shown, of: seen.nodes.get(key)?.children ?? 0, latest: !picked.has(key) };
        }}
        onPick={setPicking}
      />
      {picks && picking !== null && (
        <Iterations
          owner={picks}
          shown={seen.iterations.get(picking)}
          onClose={() => setPicking(null)}
          onPick={(iteration) => {
            setChosen(new Map(chosen).set(picking, iteration));
            setPicking(null);
          }}
        />
      )}
    </NodeSplit>
  );
}

interface Seen {
  /** the node that each box stands for, by key */
  nodes: Map<string, RunNode>;
  /** which iteration is shown, by the key of the loop */
  iterations: Map<string, number>;
  wanted: WindowKey[];
}

/** Go down the open boxes, along the nodes that are here. */
function look(
  windows: NodeWindows,
  top: Box[],
  isOpen: (box: Box) => boolean,
  picked: ReadonlyMap<string, number>,
): Seen {
  const seen: Seen = { nodes: new Map(), iterations: new Map(), wanted: [] };
  const visit = (parent: string, boxes: Box[]) => {
    const byPath = new Map<string, RunNode>();
    for (let page = 0; page * PAGE < boxes.length; page++) {
      seen.wanted.push({ parent, page });
      for (const node of windows.window(parent, page)?.nodes ?? []) byPath.set(node.path, node);
    }
    for (const box of boxes) {
      const node = byPath.get(parent ? `${parent}:${box.own}` : box.own);
      if (!node) continue;
      seen.nodes.set(box.key, node);
      if (!isSupervisor(box) || !isOpen(box)) continue;
      const inner = box.lanes.flatMap((lane) => lane.boxes);
      if (!isIterated(box)) {
        visit(node.path, inner);
        continue;
      }
      if (!node.children) continue;
      const iteration = Math.min(picked.get(box.key) ?? Infinity, node.children - 1);
      seen.iterations.set(box.key, iteration);
      visit(`${node.path}:iter${iteration}`, inner);
    }
  };
  visit("", top);
  return seen;
}
