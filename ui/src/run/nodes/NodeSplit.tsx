/* NodeSplit.tsx: a view of the run, and beside it (on a phone: over its lower part) the card of the node
 * that is looked at. */
import { useEffect, useRef, type ReactNode } from "react";
import { NodeCard } from "./NodeCard";
import "./nodes.css";
import { useSelected } from "./shared";

export function NodeSplit({ children }: { children: ReactNode }) {
  const [selected, select] = useSelected();
  const view = useRef<HTMLDivElement>(null);
  const before = useRef<Element | null>(null);
  useEffect(() => {
    if (selected) before.current = document.activeElement;
  }, [selected]);
  function close() {
    select(null);
    if (before.current instanceof HTMLElement || before.current instanceof SVGElement) before.current.focus();
  }
  return (
    <div className={selected ? "node-split with-card" : "node-split"}>
      <div className="node-view" ref={view}>
        {children}
      </div>
      {selected && <NodeCard key={selected} path={selected} onClose={close} />}
    </div>
  );
}
