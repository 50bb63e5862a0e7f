import { useMemo } from "react";
import type { Workflow } from "../api/types";
import { PlanGraph, useOpenness } from "../run/graph/PlanGraph";
import { boxesOf } from "../run/plan";
import { PlanOutline } from "./PlanOutline";

export function PlanTab({ workflow }: { workflow: Workflow }) {
  const top = useMemo(() => boxesOf(workflow.plan), [workflow.plan]);
  const openness = useOpenness(top);
  return (
    <div className="plan-tab">
      <PlanGraph label="The plan as a graph. The same as a list follows." top={top} openness={openness} />
      <section className="card plan-card" aria-label="The plan as a list">
        <PlanOutline boxes={top} />
      </section>
    </div>
  );
}
