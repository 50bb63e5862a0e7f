/* PlanOutline.tsx: a plan as nested lists: what happens, in order. It reads well aloud, too. */
import type { Json, PlanNode } from "../api/types";

interface Part {
  title: string;
  nodes: PlanNode[];
}

const asList = (nodes: PlanNode[] | PlanNode | undefined): PlanNode[] => (Array.isArray(nodes) ? nodes : nodes ? [nodes] : []);
const short = (value: Json | undefined): string => (typeof value === "string" ? value.replace(/^\$\{\s*|\s*\}$/g, "") : JSON.stringify(value ?? ""));

/** The inner sequences of a node, each under what it means. */
function partsOf(node: PlanNode): Part[] {
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
    case "step":
      return [];
  }
}

function saying(node: PlanNode): string {
  switch (node.type) {
    case "branch":
      return `if ${short(node.if)}`;
    case "loop":
      return node.while !== undefined ? `while ${short(node.while)}` : `until ${short(node.until)}`;
    case "forEach":
      return `for each of ${short(node.items)}${node.parallel ? `, in parallel${node.concurrency ? `, ${node.concurrency} at a time` : ""}` : ""}`;
    case "concurrent":
      return "all at once";
    case "workflow":
      return `the workflow ${node.name ?? ""}`;
    default:
      return node.description ?? "";
  }
}

export function PlanOutline({ nodes }: { nodes: PlanNode[] }) {
  return (
    <ol className="outline">
      {nodes.map((node, i) => (
        <li key={node.alias ?? i}>
          <div className="outline-line">
            <strong className="mono">{node.alias ?? node.type}</strong>
            <span className="kind">{node.type === "step" ? (node.kind ?? "step") : node.type}</span>
            <span className="muted outline-saying">{saying(node)}</span>
          </div>
          {node.when !== undefined && <div className="muted outline-when">only when {short(node.when)}</div>}
          {partsOf(node).map((part) => (
            <div key={part.title} className="outline-part">
              {part.title && <span className="outline-title">{part.title}</span>}
              <PlanOutline nodes={part.nodes} />
            </div>
          ))}
        </li>
      ))}
    </ol>
  );
}
