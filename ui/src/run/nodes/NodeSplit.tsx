/* NodeSplit.tsx: a view of the run, and beside it (on a phone: over its lower part) the card of the node
 * that is looked at. The focus goes to the card with the eye, and back to where it was when the card is closed. */
import { useEffect, useRef, type ReactNode } from "react";
import { NodeCard } from "./NodeCard";
import "./nodes.css";
import { useSelected } from "./shared";

export function NodeSplit({ children }: { children: ReactNode }) {
  const [selected, select] = useSelected();
  const split = useRef<HTMLDivElement>(null);
  const before = useRef<Element | null>(null);
  const last = useRef(selected); // what the address names when the page is opened takes no focus
  useEffect(() => {
    if (selected === last.current) return;
    last.current = selected;
    if (!selected) return;
    const card = split.current?.querySelector<HTMLElement>(".node-card");
    const active = document.activeElement;
    if (active && active !== document.body && !card?.contains(active)) before.current = active;
    card?.focus({ preventScroll: true });
  }, [selected]);
  function close() {
    select(null);
    const back = before.current;
    if ((back instanceof HTMLElement || back instanceof SVGElement) && back.isConnected) back.focus();
    else split.current?.querySelector<HTMLElement>("[tabindex='0']")?.focus();
  }
  return (
    <div className={selected ? "node-split with-card" : "node-split"} ref={split}>
      <div className="node-view">{children}</div>
      {selected && <NodeCard key={selected} path={selected} onClose={close} />}
    </div>
  );
}
