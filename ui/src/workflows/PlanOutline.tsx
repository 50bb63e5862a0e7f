/* PlanOutline.tsx: a plan as nested lists: what happens, in order. It reads well aloud, too. */
import { kindNameOf } from "../run/nodes/names";
import { descriptionOf, expression, sayingOf, type Box } from "../run/plan";

export function PlanOutline({ boxes }: { boxes: Box[] }) {
  return (
    <ol className="outline">
      {boxes.map((box) => (
        <li key={box.key}>
          <div className="outline-line">
            <strong className="mono">{box.type === "handler" ? "onError" : box.alias}</strong>
            <span className="kind">{kindNameOf(undefined, box)}</span>
            <span className="muted outline-saying">{descriptionOf(box) ?? sayingOf(box)}</span>
          </div>
          {box.node.when !== undefined && (
            <div className="muted outline-when">only when {expression(box.node.when)}</div>
          )}
          {box.lanes.map((lane, i) => (
            <div key={lane.title || i} className="outline-part">
              {lane.title && <span className="outline-title">{lane.title}</span>}
              <PlanOutline boxes={lane.boxes} />
            </div>
          ))}
        </li>
      ))}
    </ol>
  );
}
