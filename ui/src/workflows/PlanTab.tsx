import type { Workflow } from "../api/types";
import { PlanOutline } from "./PlanOutline";

export function PlanTab({ workflow }: { workflow: Workflow }) {
  return (
    <section className="card plan-card" aria-label="The plan as a list">
      <PlanOutline nodes={workflow.plan.steps} />
    </section>
  );
}
