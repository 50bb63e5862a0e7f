/* PlanGraph.tsx: a plan as a graph, to be moved and zoomed by mouse, finger and keys. With a run, its
 * boxes wear the status of their nodes. */
import {
  MarkerType,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type Edge as FlowEdge,
  type Node as FlowNode,
  type NodeTypes,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useShortcuts } from "../../app/shortcuts";
import { Icon } from "../../parts/Icon";
import { useNarrow } from "../../parts/useNarrow";
import type { RunNode } from "../../api/types";
import type { Box } from "../plan";
import { BoxCard, BoxGroup, GraphContext, handleAt, LaneTitle, type GraphActions } from "./boxes";
import "./graph.css";
import { CARD_W, LANES, layoutOf, openAtFirst } from "./layout";

export interface PlanGraphProps {
  label: string;
  top: Box[];
  /** of the run; undefined: the plan alone */
  nodeOf?: (key: string) => RunNode | undefined;
  /** the key of the box that is looked at */
  selected?: string;
  onSelect?: (key: string) => void;
  /** loops: which iteration is shown, and the wish for another one */
  iterationOf?: (key: string) => { shown: number; of: number; latest: boolean } | undefined;
  onPick?: (key: string) => void;
  openness: Openness;
}

export interface Openness {
  isOpen: (box: Box) => boolean;
  toggle: (box: Box) => void;
}

/** `shown`: the keys of boxes that are open until somebody closes them. */
export function useOpenness(top: Box[], shown?: ReadonlySet<string>): Openness {
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const first = useMemo(() => openAtFirst(top), [top]);
  return useMemo(() => {
    const isOpen = (box: Box) => toggled.get(box.key) ?? (shown?.has(box.key) || first(box));
    return { isOpen, toggle: (box) => setToggled(new Map(toggled).set(box.key, !isOpen(box))) };
  }, [toggled, shown, first]);
}

const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "var(--line-strong)" };
const ARROW_PASSED = { ...ARROW, color: "var(--s-completed)" };

const NODE_TYPES: NodeTypes = { card: BoxCard, frame: BoxGroup, title: LaneTitle };
const FIT = { padding: 0.06, maxZoom: 1 };
/** It begins as large as it can be read, at what is looked at, or runs, or failed, else at its top; not smaller to show all. */
const FIRST_ZOOM = 0.8;
const MARGIN_PX = 24;
const PAN_PX = 80;

export function PlanGraph(props: PlanGraphProps) {
  return (
    <ReactFlowProvider>
      <Graph {...props} />
    </ReactFlowProvider>
  );
}

function Graph({ label, top, nodeOf, selected, onSelect, iterationOf, onPick, openness }: PlanGraphProps) {
  const flow = useReactFlow();
  const narrow = useNarrow();
  // Statuses change all the time; where the boxes are, only when one is opened or closed.
  const layout = useMemo(() => layoutOf(top, openness.isOpen, narrow ? 1 : LANES), [top, openness, narrow]);
  const nodes: FlowNode[] = layout.placed.map(({ box, x, y, width, height, depth, open }) => ({
    id: box.key,
    type: open ? "frame" : "card",
    position: { x, y },
    width,
    height,
    zIndex: depth,
    selected: box.key === selected,
    data: {
      box,
      node: nodeOf?.(box.key),
      live: nodeOf !== undefined,
      iteration: iterationOf?.(box.key),
      selected: box.key === selected,
    },
  }));
  for (const title of layout.titles)
    nodes.push({
      id: title.key,
      type: "title",
      position: { x: title.x, y: title.y },
      width: title.width,
      height: 20,
      zIndex: 1,
      focusable: false,
      selectable: false,
      data: { text: title.text },
    });
  const states = useMemo(
    () => new Set(layout.placed.filter(({ box }) => box.state).map(({ box }) => box.key)),
    [layout],
  );
  const edges: FlowEdge[] = layout.edges.map(({ from, to, dashed, sides }) => {
    const passed =
      nodeOf &&
      ["completed", "skipped", "failed", "running", "waiting_retry", "suspended"].includes(
        nodeOf(to)?.status ?? "pending",
      ) &&
      nodeOf(to)?.startedAt !== undefined;
    return {
      id: `${from} ${to}${dashed ? " dashed" : ""}`,
      source: from,
      target: to,
      ...(sides && { sourceHandle: handleAt("source", sides[0]), targetHandle: handleAt("target", sides[1]) }),
      ...(states.has(from) && { markerEnd: passed ? ARROW_PASSED : ARROW }),
      type: "smoothstep",
      focusable: false,
      className: `edge${dashed ? " dashed" : ""}${passed ? " passed" : ""}`,
      zIndex: 0,
    };
  });

  const frame = useRef<HTMLDivElement>(null);
  function begin() {
    if (!frame.current) return; // it is told late, when somebody may have left the page
    const { clientWidth: width, clientHeight: height } = frame.current;
    const fits = Math.min((width - 2 * MARGIN_PX) / layout.width, (height - 2 * MARGIN_PX) / layout.height);
    const zoom = Math.min(
      1,
      Math.max(fits, Math.min(FIRST_ZOOM, (width - 2 * MARGIN_PX) / Math.min(layout.width, 2 * CARD_W))),
    );
    const last = (...statuses: string[]) =>
      layout.placed.findLast(({ box, open }) => !open && statuses.includes(nodeOf?.(box.key)?.status ?? ""));
    const at =
      layout.placed.find(({ box }) => box.key === selected) ??
      last("running", "waiting_retry", "suspended") ??
      last("failed");
    const wide = layout.width * zoom > width;
    const x = wide && at ? width / 2 - (at.x + at.width / 2) * zoom : (width - layout.width * zoom) / 2;
    const lowest = height - MARGIN_PX - layout.height * zoom; // no emptier below than needed
    const y =
      lowest >= MARGIN_PX
        ? lowest / 2
        : at
          ? Math.min(MARGIN_PX, Math.max(lowest, height / 2 - at.y * zoom))
          : MARGIN_PX;
    void flow.setViewport({ x, y, zoom });
  }
  const fit = () => void flow.fitView(FIT);
  useShortcuts({
    "+": () => void flow.zoomIn(),
    "=": () => void flow.zoomIn(),
    "-": () => void flow.zoomOut(),
    "0": fit,
  });
  function pan(event: KeyboardEvent) {
    const by = { ArrowLeft: [PAN_PX, 0], ArrowRight: [-PAN_PX, 0], ArrowUp: [0, PAN_PX], ArrowDown: [0, -PAN_PX] }[
      event.key
    ];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const { x, y, zoom } = flow.getViewport();
    void flow.setViewport({ x: x + by[0]!, y: y + by[1]!, zoom });
  }
  const actions: GraphActions = { select: onSelect, toggle: openness.toggle, pick: onPick };
  return (
    <GraphContext.Provider value={actions}>
      <div className="card graph" ref={frame} role="region" aria-label={label} tabIndex={0} onKeyDown={pan}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          onInit={begin}
          minZoom={0.1}
          maxZoom={2}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          preventScrolling={false}
          zoomOnScroll={false}
          zoomOnDoubleClick={false}
          onlyRenderVisibleElements={nodes.length > 150}
          attributionPosition="bottom-left"
        />
        <div className="graph-tools" role="group" aria-label="View">
          <button
            className="button small icon-only"
            onClick={() => void flow.zoomIn()}
            aria-label="Zoom in"
            title="Zoom in (+)"
          >
            <Icon name="plus" size={14} />
          </button>
          <button
            className="button small icon-only"
            onClick={() => void flow.zoomOut()}
            aria-label="Zoom out"
            title="Zoom out (−)"
          >
            <span aria-hidden="true">−</span>
          </button>
          <button className="button small" onClick={fit} title="Show all of it (0)">
            Fit
          </button>
        </div>
      </div>
    </GraphContext.Provider>
  );
}
