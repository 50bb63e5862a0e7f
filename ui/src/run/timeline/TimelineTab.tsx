/* TimelineTab.tsx: who did what when. The rows are those of the tree; beside each the time it took, its
 * attempts and its waits. Only what is on the screen is drawn, and only of steps that were tried more
 * than once are the attempts asked for. */
import { useQueries } from "@tanstack/react-query";
import { useEffect, useRef, useState, type RefObject } from "react";
import type { Attempt, RunNode } from "../../api/types";
import { useShortcuts } from "../../app/shortcuts";
import { Failure } from "../../parts/Failure";
import { Icon } from "../../parts/Icon";
import { Loading } from "../../parts/Loading";
import { formatClock, formatDuration } from "../../parts/time";
import { useFresh } from "../../parts/useFresh";
import { isTerminal, useRunEvents, useRunLive } from "../live";
import { attemptsQuery } from "../nodes/queries";
import { attemptsOf, nameOf, tookOf } from "../nodes/names";
import { NodeSplit } from "../nodes/NodeSplit";
import { useRunPlan, useSelected } from "../nodes/shared";
import { TreeGrid } from "../nodes/TreeGrid";
import { useTree, type Tree } from "../nodes/useTree";
import { boxAt, type Box } from "../plan";
import { BAR_NAMES, barsOf, isBusy, type Bar } from "./bars";
import { idleIn, scaleOf, ticksOf, type Scale, type Span } from "./scale";
import "./timeline.css";

const TICK_MS = 250;
/** However much happens, attempts are read at most this often. */
const READ_MS = 800;
const TICK_APART_PX = 90;
/** Room for a character of the time at a tick, and before the first one. */
const TICK_CHARACTER_PX = 7;
const TICK_BEFORE_PX = 8;
const ZOOM_STEP = 1.6;
const ZOOM_MOST = 400;
const LANE_MIN_PX = 200;
/** Room behind the last bar. */
const LANE_END_PX = 24;
/** Room for how long it took. */
const TOOK_PX = 76;

export function TimelineTab() {
  const tree = useTree();
  const { run } = useRunLive();
  if (tree.loading) return <Loading what="the timeline" />;
  if (tree.error) return <Failure error={tree.error} retry={() => tree.windows.invalidate()} />;
  return (
    <Timeline
      tree={tree}
      whole={{ from: run.startedAt ?? run.createdAt, to: run.completedAt ?? 0 }}
      live={!isTerminal(run.status)}
    />
  );
}

function Timeline({ tree, whole, live }: { tree: Tree; whole: Span; live: boolean }) {
  const { plan } = useRunPlan();
  const [selected, select] = useSelected();
  const [zoom, setZoom] = useState(1);
  const [compressed, setCompressed] = useState(true);
  const scroller = useRef<HTMLDivElement>(null);
  const width = useLaneWidth(scroller);
  const now = useServerNow(live, tree.windows.clockOffset);

  const shown = shownNodes(tree);
  const attempts = useAttempts(shown);
  const end = Math.max(whole.to || now, ...shown.map((node) => node.completedAt ?? 0));
  const span = { from: whole.from, to: end };
  const boxOf = (node: RunNode) => boxAt(plan.boxes, node.path);
  const idle = compressed ? idleIn(span, busySpans(tree, boxOf, now, attempts)) : [];
  const scale = scaleOf(span, Math.max(LANE_MIN_PX, width * zoom) - LANE_END_PX, idle);
  const ticks = ticksOf(scale, TICK_APART_PX);
  const named = ticks
    .map(({ time, x }) => ({ x, name: time === 0 ? "0" : formatDuration(time) }))
    .filter(({ x, name }) => x + TICK_BEFORE_PX + name.length * TICK_CHARACTER_PX <= scale.width + LANE_END_PX);

  /** Zoom, with what is at this place of the screen staying there. */
  function zoomBy(factor: number, at = width / 2) {
    const next = Math.min(ZOOM_MOST, Math.max(1, zoom * factor));
    const element = scroller.current;
    if (!element || next === zoom) return;
    const left = ((element.scrollLeft + at) * next) / zoom - at;
    setZoom(next);
    requestAnimationFrame(() => (element.scrollLeft = left));
  }
  useShortcuts({
    "+": () => zoomBy(ZOOM_STEP),
    "=": () => zoomBy(ZOOM_STEP),
    "-": () => zoomBy(1 / ZOOM_STEP),
    "0": () => setZoom(1),
  });
  useCtrlWheel(scroller, (event) => zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2));

  return (
    <NodeSplit>
      <div className="timeline">
        <div className="timeline-tools">
          <Legend />
          <label className="check">
            <input type="checkbox" checked={compressed} onChange={(event) => setCompressed(event.target.checked)} />
            Compress idle time
          </label>
          <div className="actions" role="group" aria-label="Zoom">
            <button
              className="button small icon-only"
              aria-label="Zoom in"
              title="Zoom in (+)"
              onClick={() => zoomBy(ZOOM_STEP)}
            >
              <Icon name="plus" size={14} />
            </button>
            <button
              className="button small icon-only"
              aria-label="Zoom out"
              title="Zoom out (−)"
              onClick={() => zoomBy(1 / ZOOM_STEP)}
              disabled={zoom === 1}
            >
              <span aria-hidden="true">−</span>
            </button>
            <button className="button small" title="All of it (0)" onClick={() => setZoom(1)} disabled={zoom === 1}>
              Fit
            </button>
          </div>
        </div>
        <TreeGrid
          label="Timeline of the run"
          className="timeline-grid"
          tree={tree}
          plan={plan}
          selected={selected}
          onSelect={select}
          scroller={scroller}
          head={
            <>
              <span role="columnheader" className="tree-name">
                Node
              </span>
              <span role="columnheader" className="lane axis" style={{ width: scale.width + LANE_END_PX }}>
                <span className="sr-only">Time</span>
                {named.map(({ x, name }) => (
                  <span key={x} className="tick" style={{ left: x }}>
                    {name}
                  </span>
                ))}
              </span>
            </>
          }
          ground={<Ground scale={scale} ticks={ticks} />}
          cells={(node, box) => (
            <Lane node={node} bars={barsOf(node, box, now, attempts.get(node.path))} scale={scale} />
          )}
        />
      </div>
    </NodeSplit>
  );
}

function Lane({ node, bars, scale }: { node: RunNode; bars: Bar[]; scale: Scale }) {
  const last = bars.at(-1);
  return (
    <span role="gridcell" className="lane" style={{ width: scale.width + LANE_END_PX }} aria-label={spoken(node, bars)}>
      {bars.map((bar, i) => {
        const left = scale.x(bar.from);
        return (
          <span
            key={i}
            className={`bar bar-${bar.kind} status-${node.status}${bar.open ? " open" : ""}`}
            style={{ left, width: Math.max(2, scale.x(bar.to) - left) }}
            title={
              bar.kind === "inside"
                ? `${nameOf(node)}: ${formatDuration(bar.to - bar.from)}`
                : `${BAR_NAMES[bar.kind]}: ${formatDuration(bar.to - bar.from)}, from ${formatClock(bar.from)}`
            }
          />
        );
      })}
      {last && <After node={node} x={scale.x(last.to)} first={scale.x(bars[0]!.from)} width={scale.width} />}
    </span>
  );
}

/** How long it took: behind the bar, before it where there is no room, over its end where there is none at all. */
function After({ node, x, first, width }: { node: RunNode; x: number; first: number; width: number }) {
  const took = tookOf(node);
  if (!took) return null;
  if (x + TOOK_PX < width + LANE_END_PX)
    return (
      <span className="bar-took" style={{ left: x + 6 }}>
        {took}
      </span>
    );
  return (
    <span
      className={first < TOOK_PX ? "bar-took over" : "bar-took"}
      style={{ right: first < TOOK_PX ? 2 : width - first + LANE_END_PX + 6 }}
    >
      {took}
    </span>
  );
}

function spoken(node: RunNode, bars: Bar[]): string {
  if (bars.length === 0) return node.status === "skipped" ? "skipped" : "not begun";
  const words = bars
    .filter((bar) => bar.kind !== "inside" && bar.kind !== "work")
    .map((bar) => `${BAR_NAMES[bar.kind as keyof typeof BAR_NAMES]} for ${formatDuration(bar.to - bar.from)}`);
  return [tookOf(node) || "goes on", attemptsOf(node), ...words].filter(Boolean).join(", ");
}

/** Behind the rows: a line for each tick, and a mark where idle time is left out. */
function Ground({ scale, ticks }: { scale: Scale; ticks: { time: number; x: number }[] }) {
  return (
    <div className="timeline-ground" aria-hidden="true">
      {ticks.map((tick) => (
        <span key={tick.time} className="tick-line" style={{ left: tick.x }} />
      ))}
      {scale.stretches.map(
        (stretch) =>
          stretch.broken && (
            <span
              key={stretch.from}
              className="break"
              style={{ left: stretch.x, width: stretch.width }}
              title={`${formatDuration(stretch.to - stretch.from)} without work, left out`}
            >
              <span>{formatDuration(stretch.to - stretch.from)}</span>
            </span>
          ),
      )}
    </div>
  );
}

function Legend() {
  return (
    <ul className="legend" aria-label="Legend">
      {(Object.keys(BAR_NAMES) as (keyof typeof BAR_NAMES)[]).map((kind) => (
        <li key={kind}>
          <span className={`bar bar-${kind} status-${kind === "failed" ? "failed" : "completed"}`} aria-hidden="true" />
          {BAR_NAMES[kind]}
        </li>
      ))}
    </ul>
  );
}

/** The nodes of the rows on the screen. */
function shownNodes(tree: Tree): RunNode[] {
  const nodes: RunNode[] = [];
  for (let number = tree.shown.first; number <= tree.shown.last; number++) {
    const node = tree.row(number)?.node;
    if (node) nodes.push(node);
  }
  return nodes;
}

/** When something worked, as far as it is open: what is open is seen through, what is closed counts as a whole. */
function busySpans(
  tree: Tree,
  boxOf: (node: RunNode) => Box | undefined,
  now: number,
  attempts: Map<string, Attempt[]>,
): Span[] {
  const spans: Span[] = [];
  const open = new Set(tree.rows.parents);
  for (const parent of tree.rows.parents)
    for (const node of tree.windows.window(parent)?.nodes ?? []) {
      if (open.has(node.path)) continue;
      spans.push(...barsOf(node, boxOf(node), now, attempts.get(node.path)).filter(isBusy));
    }
  for (const parent of tree.rows.parents) {
    const total = tree.windows.total(parent) ?? 0;
    const listed = tree.windows.window(parent)?.nodes.length ?? 0;
    const owner = total > listed ? ownerSpan(tree, parent, now) : undefined;
    if (owner) spans.push(owner); // the rest is not here: busy as far as anybody knows
  }
  return spans;
}

function ownerSpan(tree: Tree, path: string, now: number): Span | undefined {
  for (const parent of tree.rows.parents)
    for (const node of tree.windows.window(parent)?.nodes ?? [])
      if (node.path === path && node.startedAt !== undefined)
        return { from: node.startedAt, to: node.completedAt ?? now };
  return undefined;
}

/** The attempts of those that were tried more than once, by path. */
function useAttempts(nodes: RunNode[]): Map<string, Attempt[]> {
  const { runId } = useRunLive();
  const retried = nodes.filter(
    (node) => (node.retryCount ?? 0) > 0 || (node.crashes ?? 0) > 0 || node.status === "waiting_retry",
  );
  const results = useQueries({ queries: retried.map((node) => attemptsQuery(runId, node.path)) });
  const refetch = useFresh(
    results.some((result) => result.isFetching),
    () => results.forEach((result) => void result.refetch()),
    READ_MS,
  );
  useRunEvents({
    onEvents: (events) => {
      if (
        events.some(
          (event) =>
            event.path !== undefined && event.kind !== "log" && retried.some((node) => node.path === event.path),
        )
      )
        refetch();
    },
    onOpen: refetch,
  });
  const map = new Map<string, Attempt[]>();
  retried.forEach((node, i) => {
    const known = results[i]?.data?.attempts;
    if (known) map.set(node.path, known);
  });
  return map;
}

/** How wide the lane beside the names is on the screen. */
function useLaneWidth(scroller: RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => {
      const name = element.querySelector<HTMLElement>(".tree-head .tree-name");
      setWidth(element.clientWidth - (name?.offsetWidth ?? 0));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller]);
  return width;
}

/** The server's time, some times a second while the run goes on. */
function useServerNow(live: boolean, offset: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!live) return;
    const timer = window.setInterval(() => setNow(Date.now()), TICK_MS);
    return () => window.clearInterval(timer);
  }, [live]);
  return now + offset;
}

/** The wheel with Ctrl, or two fingers on a pad; the browser would zoom the page. */
function useCtrlWheel(
  scroller: RefObject<HTMLDivElement | null>,
  onWheel: (event: globalThis.WheelEvent) => void,
): void {
  const newest = useRef(onWheel);
  useEffect(() => {
    newest.current = onWheel;
  });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const turn = (event: globalThis.WheelEvent) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      newest.current(event);
    };
    element.addEventListener("wheel", turn, { passive: false });
    return () => element.removeEventListener("wheel", turn);
  }, [scroller]);
}
