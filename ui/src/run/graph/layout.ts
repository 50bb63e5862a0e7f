/* layout.ts: where the boxes of a plan are drawn.
 *
 * A plan is sequences in boxes in sequences, so no search for a layout is needed: a sequence goes down, a
 * branch or a concurrent block puts its lanes side by side, and a box is as large as what is in it. One
 * pass up for the sizes, one down for the places.
 *
 * Stages stand side by side. The states of a stage stand in rows, each below what it depends on, so that the
 * arrows go down; in a row by priority. */
import { dependenciesOf, hasStages, isSupervisor, priorityOf, redirectOf, type Box } from "../plan";

export const CARD_W = 216;
export const CARD_H = 60;
const GAP_X = 28;
const GAP_Y = 40;
const PAD = 18;
/** A group's line with its name; of a loop with one for its iterations below. */
export const HEAD_H = 44;
export const PICK_H = 32;
const LANE_TITLE_H = 26;
const GROUP_MIN_W = 300;
/** Lanes in one row; more go below. */
export const LANES = 5;
/** States of a stage in one row. */
const STATES = 3;
const STAGE_GAP_X = 64;
/** Edges that leave downwards turn here. */
const STAGE_FOOT = 16;

export interface Placed {
  box: Box;
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
  /** drawn with what is in it */
  open: boolean;
}

export interface Title {
  key: string;
  text: string;
  x: number;
  y: number;
  width: number;
}

export interface Edge {
  from: string;
  to: string;
  /** taken only on failure: to the handler, or to the state that runs before a retry */
  dashed: boolean;
  /** the sides that it leaves and reaches, unless it goes down */
  sides?: [Side, Side];
}

export type Side = "left" | "right" | "bottom";

export interface Layout {
  placed: Placed[];
  titles: Title[];
  edges: Edge[];
  width: number;
  height: number;
}

interface Size {
  width: number;
  height: number;
}

interface SizedLane {
  title: string;
  boxes: Sized[];
  size: Size;
}

interface Sized extends Size {
  box: Box;
  open: boolean;
  rows: { lanes: SizedLane[]; height: number; width: number }[];
  /** between rows */
  gap: number;
}

function sizeSequence(boxes: Sized[]): Size {
  return {
    width: Math.max(0, ...boxes.map((box) => box.width)),
    height: boxes.reduce((sum, box) => sum + box.height, 0) + GAP_Y * Math.max(0, boxes.length - 1),
  };
}

function headOf(box: Box): number {
  return HEAD_H + (box.type === "forEach" || box.type === "loop" ? PICK_H : 0);
}

function sizeBox(box: Box, isOpen: (box: Box) => boolean, inRow: number): Sized {
  const open = isSupervisor(box) && isOpen(box);
  if (!open) return { box, open, rows: [], gap: 0, width: CARD_W, height: CARD_H };
  const lanes = box.lanes.map((lane) => {
    const boxes = lane.boxes.map((each) => sizeBox(each, isOpen, inRow));
    const size = sizeSequence(boxes);
    return {
      title: lane.title,
      boxes,
      size: { width: size.width, height: size.height + (lane.title ? LANE_TITLE_H : 0) },
    };
  });
  if (box.type === "stage") return sizeStage(box, lanes, inRow);
  const perRow =
    lanes.length <= inRow || inRow === 1
      ? Math.min(inRow, lanes.length)
      : Math.max(inRow, Math.ceil(Math.sqrt(lanes.length)));
  return sizeGroup(box, rowsOf(lanes, perRow), GAP_X);
}

function rowsOf(lanes: SizedLane[], perRow: number): Sized["rows"] {
  const rows: Sized["rows"] = [];
  for (let i = 0; i < lanes.length; i += perRow) {
    const row = lanes.slice(i, i + perRow);
    rows.push({
      lanes: row,
      height: Math.max(...row.map((lane) => lane.size.height)),
      width: row.reduce((sum, lane) => sum + lane.size.width, 0) + GAP_X * (row.length - 1),
    });
  }
  return rows;
}

function sizeGroup(box: Box, rows: Sized["rows"], gap: number): Sized {
  return {
    box,
    open: true,
    rows,
    gap,
    width: Math.max(GROUP_MIN_W, ...rows.map((row) => row.width + 2 * PAD)),
    height: headOf(box) + rows.reduce((sum, row) => sum + row.height, 0) + gap * Math.max(0, rows.length - 1) + PAD,
  };
}

/** How many rows of states stand above each, by key. */
export function depthsOf(states: Box[]): Map<string, number> {
  const own = new Map(states.map((state) => [state.key, state]));
  const depths = new Map<string, number>();
  // What a state depends on has a higher priority: in that order every depth is known when it is asked for.
  for (const state of [...states].sort((a, b) => priorityOf(b) - priorityOf(a))) {
    const above = dependenciesOf(state)
      .filter((key) => own.has(key))
      .map((key) => depths.get(key) ?? 0);
    depths.set(state.key, above.length === 0 ? 0 : Math.max(...above) + 1);
  }
  return depths;
}

function sizeStage(box: Box, lanes: SizedLane[], inRow: number): Sized {
  const depths = depthsOf(lanes.map((lane) => lane.boxes[0]!.box));
  const levels: SizedLane[][] = [];
  for (const lane of lanes) (levels[depths.get(lane.boxes[0]!.box.key) ?? 0] ??= []).push(lane);
  const perRow = Math.min(inRow, STATES);
  const rows = levels.flatMap((level) => {
    const sorted = [...level].sort((a, b) => priorityOf(b.boxes[0]!.box) - priorityOf(a.boxes[0]!.box));
    return rowsOf(sorted, Math.max(perRow, inRow === 1 ? 1 : Math.ceil(Math.sqrt(sorted.length))));
  });
  const sized = sizeGroup(box, rows, GAP_Y);
  return { ...sized, height: sized.height + STAGE_FOOT };
}

function placeSequence(boxes: Sized[], center: number, top: number, depth: number, into: Layout): void {
  let y = top;
  boxes.forEach((sized, i) => {
    placeBox(sized, center - sized.width / 2, y, depth, into);
    y += sized.height + GAP_Y;
    const before = boxes[i - 1];
    if (before) into.edges.push({ from: before.box.key, to: sized.box.key, dashed: sized.box.type === "handler" });
  });
}

function placeBox(sized: Sized, x: number, y: number, depth: number, into: Layout): void {
  const { box, open, width, height } = sized;
  into.placed.push({ box, x, y, width, height, depth, open });
  let top = y + headOf(box);
  for (const row of sized.rows) {
    let left = x + (width - row.width) / 2;
    for (const lane of row.lanes) {
      if (lane.title)
        into.titles.push({
          key: `${box.key}:${lane.title}`,
          text: lane.title,
          x: left,
          y: top,
          width: lane.size.width,
        });
      placeSequence(lane.boxes, left + lane.size.width / 2, top + (lane.title ? LANE_TITLE_H : 0), depth + 1, into);
      left += lane.size.width + GAP_X;
    }
    top += row.height + sized.gap;
  }
}

/** Stages in order, from left to right; a handler, which is no stage, comes last. */
function placeStages(stages: Sized[], into: Layout): void {
  let x = 0;
  stages.forEach((sized, i) => {
    placeBox(sized, x, 0, 0, into);
    x += sized.width + STAGE_GAP_X;
    const before = stages[i - 1];
    if (before)
      into.edges.push({
        from: before.box.key,
        to: sized.box.key,
        dashed: sized.box.type === "handler",
        sides: ["right", "left"],
      });
  });
}

/** What states depend on, and where they are sent on failure; of those that are drawn. In one column they pass by
 * what is between them, at the left and at the right. */
function placeDependencies(into: Layout, oneColumn: boolean): void {
  const drawn = new Map(into.placed.map((placed) => [placed.box.key, placed]));
  for (const { box, y } of into.placed) {
    if (!box.state) continue;
    const stage = box.key.slice(0, -box.own.length);
    for (const from of dependenciesOf(box)) {
      if (!drawn.has(from)) continue;
      const sides: Pick<Edge, "sides"> = oneColumn
        ? { sides: ["left", "left"] }
        : from.startsWith(stage)
          ? {}
          : { sides: ["bottom", "left"] };
      into.edges.push({ from, to: box.key, dashed: false, ...sides });
    }
    const redirect = drawn.get(redirectOf(box) ?? "");
    if (redirect)
      into.edges.push({
        from: box.key,
        to: redirect.box.key,
        dashed: true,
        sides: redirect.y === y ? ["bottom", "bottom"] : ["right", "right"],
      });
  }
}

export const MEASURED = "rival graph layout";

/** `inRow`: lanes side by side; 1 where there is no room for more. */
export function layoutOf(top: Box[], isOpen: (box: Box) => boolean, inRow = LANES): Layout {
  const begun = performance.now();
  const sized = top.map((box) => sizeBox(box, isOpen, inRow));
  const size = sizeSequence(sized);
  const layout: Layout = { placed: [], titles: [], edges: [], ...size };
  const sideBySide = inRow > 1 && hasStages(top);
  if (sideBySide) {
    layout.width = sized.reduce((sum, box) => sum + box.width, 0) + STAGE_GAP_X * (sized.length - 1);
    layout.height = Math.max(...sized.map((box) => box.height));
    placeStages(sized, layout);
  } else {
    placeSequence(sized, size.width / 2, 0, 0, layout);
  }
  placeDependencies(layout, inRow === 1);
  performance.measure(MEASURED, { start: begun }); // for the tests' budget, and for the browser's profiler
  return layout;
}

/** A plan that is too large to be read as a whole is drawn closed, from this depth on. */
const LARGE = 60;

export function openAtFirst(top: Box[]): (box: Box) => boolean {
  const size = top.reduce((sum, box) => sum + box.size, 0);
  if (size <= LARGE) return () => true;
  return (box) => !box.key.includes(":") && box.size <= LARGE / 3;
}
