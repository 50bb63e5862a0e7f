/* plan.ts: the shape of a plan: which nodes are inside a node, whatever its type. */
import type { PlanNode } from "./types";

export interface PlanPart {
  /** "then", "else"; "" where there is only one */
  title: string;
  nodes: PlanNode[];
}

const asList = (nodes: PlanNode[] | PlanNode | undefined): PlanNode[] => (Array.isArray(nodes) ? nodes : nodes ? [nodes] : []);

/** The inner sequences of a node. */
export function partsOf(node: PlanNode): PlanPart[] {
  switch (node.type) {
    case "branch":
      return [
        { title: "then", nodes: asList(node.then) },
        { title: "else", nodes: asList(node.else) },
      ].filter((part) => part.nodes.length > 0);
    case "loop":
      return [{ title: "", nodes: asList(node.body) }];
    case "forEach":
      return [{ title: "", nodes: asList(node.run) }];
    case "workflow":
    case "concurrent":
    case "stage":
      return [{ title: "", nodes: asList(node.steps) }];
    default:
      return [];
  }
}

export function childrenOf(node: PlanNode): PlanNode[] {
  return partsOf(node).flatMap((part) => part.nodes);
}
