/* layout.ts: where the boxes of a plan are drawn.
 *
 * A plan is sequences in boxes in sequences, so no search for a layout is needed: a sequence goes down, a
 * branch or a concurrent block puts its lanes side by side, and a box is as large as what is in it. One
 * pass up for the sizes, one down for the places. */
import { isSupervisor, type Box } from "../plan";

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
  /** to the handler: taken only when the run fails */
  dashed: boolean;
}

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

interface Sized extends Size {
  box: Box;
  open: boolean;
  rows: { lanes: { title: string; boxes: Sized[]; size: Size }[]; height: number; width: number }[];
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
  if (!open) return { box, open, rows: [], width: CARD_W, height: CARD_H };
  const lanes = box.lanes.map((lane) => {
    const boxes = lane.boxes.map((each) => sizeBox(each, isOpen, inRow));
    const size = sizeSequence(boxes);
    return {
      title: lane.title,
      boxes,
      size: { width: size.width, height: size.height + (lane.title ? LANE_TITLE_H : 0) },
    };
  });
  const perRow =
    lanes.length <= inRow || inRow === 1
      ? Math.min(inRow, lanes.length)
      : Math.max(inRow, Math.ceil(Math.sqrt(lanes.length)));
  const rows: Sized["rows"] = [];
  for (let i = 0; i < lanes.length; i += perRow) {
    const row = lanes.slice(i, i + perRow);
    rows.push({
      lanes: row,
      height: Math.max(...row.map((lane) => lane.size.height)),
      width: row.reduce((sum, lane) => sum + lane.size.width, 0) + GAP_X * (row.length - 1),
    });
  }
  return {
    box,
    open,
    rows,
    width: Math.max(GROUP_MIN_W, ...rows.map((row) => row.width + 2 * PAD)),
    height: headOf(box) + rows.reduce((sum, row) => sum + row.height, 0) + GAP_X * (rows.length - 1) + PAD,
  };
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
    top += row.height + GAP_X;
  }
}

export const MEASURED = "rival graph layout";

/** `inRow`: lanes side by side; 1 where there is no room for more. */
export function layoutOf(top: Box[], isOpen: (box: Box) => boolean, inRow = LANES): Layout {
  const begun = performance.now();
  const sized = top.map((box) => sizeBox(box, isOpen, inRow));
  const size = sizeSequence(sized);
  const layout: Layout = { placed: [], titles: [], edges: [], ...size };
  placeSequence(sized, size.width / 2, 0, 0, layout);
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
