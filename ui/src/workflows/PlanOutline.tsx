/* PlanOutline.tsx: a plan as nested lists: what happens, in order. It reads well aloud, too. */
import { partsOf } from "../api/plan";
import type { Json, PlanNode } from "../api/types";

const short = (value: Json | undefined): string => (typeof value === "string" ? value.replace(/^\$\{\s*|\s*\}$/g, "") : JSON.stringify(value ?? ""));

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
