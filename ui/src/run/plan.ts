/* plan.ts: a plan as boxes in boxes, and how its nodes and the paths of a run belong together.
 *
 * A box has a `key`: its path with every iteration left open ("each:iter*:node0:fetch"). Going
 * from the path of a node to its box takes the plan, because an alias may look like anything ("iter3" is
 * a fine name for a step). */
import { writeJson } from "../api/json";
import type { Json, Plan, PlanNode, PlanState } from "../api/types";

export type BoxType =
  "step" | "workflow" | "branch" | "loop" | "forEach" | "concurrent" | "stage" | "chat" | "sequence" | "handler";

export interface Lane {
  /** "then", "else"; "" where there is nothing to tell apart */
  title: string;
  boxes: Box[];
}

export interface Box {
  key: string;
  /** what its path has behind that of the node (or iteration) it is in: "node0:fetch" */
  own: string;
  alias: string;
  type: BoxType;
  /** as the plan has it; a sequence inside a concurrent block has no more than its alias */
  node: Partial<PlanNode>;
  /** What is in it: one lane in order, or, in a branch and a concurrent block, lanes side by side. */
  lanes: Lane[];
  /** Steps and supervisors in it, at all depths. */
  size: number;
  /** of a state of a stage; the box itself is its agent */
  state?: PlanState;
}

export const ANY_ITERATION = "iter*";

interface Child extends Partial<PlanNode> {
  nodes?: PlanNode[];
}

const asList = (nodes: PlanNode[] | PlanNode | undefined): PlanNode[] =>
  Array.isArray(nodes) ? nodes : nodes ? [nodes] : [];

function inSequence(under: string, nodes: PlanNode[], path = ""): Box[] {
  return nodes.map((node, i) => boxOf(under, `${path}node${i}:${node.alias ?? ""}`, node));
}

/** A body may be a workflow by itself: its nodes then stand in its place. */
function bodyOf(run: PlanNode[] | PlanNode | undefined): PlanNode[] {
  if (run && !Array.isArray(run) && run.type === "workflow") return asList(run.steps);
  return asList(run);
}

function lanesOf(key: string, node: Child): Lane[] {
  switch (node.type) {
    case undefined:
      return [{ title: "", boxes: inSequence(key, node.nodes ?? []) }];
    case "stage":
      return (node.states ?? []).map((state) => ({ title: "", boxes: [stateOf(key, state)] }));
    case "workflow":
      return [{ title: "", boxes: inSequence(key, asList(node.steps)) }];
    case "loop":
      return [{ title: "", boxes: inSequence(`${key}:${ANY_ITERATION}`, asList(node.body)) }];
    case "forEach":
      return [{ title: "", boxes: inSequence(`${key}:${ANY_ITERATION}`, bodyOf(node.run)) }];
    case "branch":
      return (["then", "else"] as const)
        .map((title) => ({ title, boxes: inSequence(key, asList(node[title]), `${title}:`) }))
        .filter((lane) => lane.boxes.length > 0);
    case "concurrent":
      return asList(node.steps).map((child) => ({ title: "", boxes: [boxOf(key, child.alias ?? "", child)] }));
    default:
      return [];
  }
}

function stateOf(stage: string, state: PlanState): Box {
  return { ...boxOf(stage, state.alias, { type: "step", ...state.agent, alias: state.alias }), state };
}

function boxOf(under: string, own: string, node: Child): Box {
  const key = under ? `${under}:${own}` : own;
  const lanes = lanesOf(key, node);
  const type = node.type ?? "sequence";
  const inner = lanes.reduce((sum, lane) => sum + lane.boxes.reduce((each, box) => each + box.size, 0), 0);
  return { key, own, alias: node.alias ?? key, type, node, lanes, size: inner + 1 };
}

/** The top level of a plan; the workflow's own handler, if it has one, comes last. */
export function boxesOf(plan: Plan): Box[] {
  const boxes = plan.steps.map((node) => boxOf("", node.alias ?? "", node));
  if (plan.onError)
    boxes.push({
      key: "onError",
      own: "onError",
      alias: "onError",
      type: "handler",
      // A list of nodes is what the handler does; it has no more to say of itself.
      node: Array.isArray(plan.onError) ? {} : plan.onError,
      lanes: [],
      size: 1,
    });
  return boxes;
}

/** As its author wrote it: text, perhaps with expressions in it. */
export function descriptionOf(box: Box): string | undefined {
  const { description } = box.node;
  return typeof description === "string" ? description : undefined;
}

export function isSupervisor(box: Box): boolean {
  return box.lanes.length > 0;
}

export function isIterated(box: Box): boolean {
  return box.type === "forEach" || box.type === "loop";
}

/** Is it a schedule of stages? */
export function hasStages(top: Box[]): boolean {
  return top.some((box) => box.type === "stage");
}

/** Does it ask a model, at any depth? */
export function hasChats(top: Box[]): boolean {
  return top.some((box) => box.type === "chat" || box.lanes.some((lane) => hasChats(lane.boxes)));
}

/** What is left out of a plan. */
const PRIORITY = 100;

export const priorityOf = (box: Box): number => box.state?.priority ?? PRIORITY;

/** The keys of the states that a state depends on. */
export function dependenciesOf(box: Box): string[] {
  const stage = box.key.slice(0, -box.own.length - 1);
  const keys = Object.values(box.state?.dependsOn ?? {}).map((on) => `${on.stage ?? stage}:${on.state}`);
  return [...new Set(keys)];
}

/** The key of the state that runs before this one is tried again. */
export function redirectOf(box: Box): string | undefined {
  const to = box.state?.onFailure;
  return to === undefined ? undefined : `${box.key.slice(0, -box.own.length - 1)}:${to}`;
}

/** Every box of a plan by its key. */
export function byKey(boxes: Box[], into = new Map<string, Box>()): Map<string, Box> {
  for (const box of boxes) {
    into.set(box.key, box);
    for (const lane of box.lanes) byKey(lane.boxes, into);
  }
  return into;
}

/** The box that a path of the run belongs to; of an iteration or a branch's path: of what it is in. */
export function boxAt(boxes: Map<string, Box>, path: string): Box | undefined {
  let key = "";
  let found: Box | undefined;
  for (const part of path.split(":")) {
    const plain = key ? `${key}:${part}` : part;
    key = found && found.key === key && isIterated(found) ? `${key}:${ANY_ITERATION}` : plain;
    found = boxes.get(key) ?? found;
  }
  return found;
}

/** One box on the way to a node. */
export interface Passed {
  box: Box;
  /** the path of this node, and of the iteration of it that the way goes through */
  path: string;
  iteration?: number;
}

/** The way from the top to the node at a path, box by box. */
export function wayTo(boxes: Map<string, Box>, path: string): Passed[] {
  const way: Passed[] = [];
  let key = "";
  let at = "";
  for (const part of path.split(":")) {
    at = at ? `${at}:${part}` : part;
    const last = way.at(-1);
    if (last && last.box.key === key && isIterated(last.box)) {
      last.iteration = Number(part.replace(/^\D+/, ""));
      last.path = at;
      key = `${key}:${ANY_ITERATION}`;
      continue;
    }
    key = key ? `${key}:${part}` : part;
    const box = boxes.get(key);
    if (box) way.push({ box, path: at });
  }
  return way;
}

/** `tables #2 › rows #4 › insert`: a path as people say it. */
export function wayText(boxes: Map<string, Box>, path: string): string {
  const way = wayTo(boxes, path);
  if (way.length === 0) return path;
  return way
    .map(
      ({ box, iteration }) => box.alias + (iteration === undefined ? "" : ` #${(iteration + 1).toLocaleString("en")}`),
    )
    .join(" › ");
}

/** What kind of work a step does: command, http, delay …; of a supervisor its type. */
export function kindOf(box: Box | undefined): string {
  if (!box) return "";
  return box.type === "step" || box.type === "handler" ? (box.node.kind ?? "function") : box.type;
}

/** Does it do nothing but wait, for a time or for somebody? */
export function onlyWaits(box: Box | undefined): boolean {
  return box?.type === "step" && (box.node.kind === "delay" || box.node.kind === "signal");
}

/** An expression as it is written, without the marks around it; another value as JSON. */
export const expression = (value: Json | undefined): string =>
  typeof value === "string" ? value.replace(/^\$\{\s*|\s*\}$/g, "") : value === undefined ? "" : writeJson(value);

/** What a supervisor does, in the words of its file. */
export function sayingOf({ type, node }: Box): string {
  switch (type) {
    case "branch":
      return `if ${expression(node.if)}`;
    case "loop":
      return node.while !== undefined ? `while ${expression(node.while)}` : `until ${expression(node.until)}`;
    case "forEach":
      return `of ${expression(node.items)}${node.parallel ? `, in parallel${node.concurrency ? `, ${node.concurrency} at a time` : ""}` : ""}`;
    case "workflow":
      return node.name ?? "";
    case "concurrent":
      return "all at once";
    case "stage":
      return node.concurrency ? `${node.concurrency} at a time` : "";
    default:
      return "";
  }
}
