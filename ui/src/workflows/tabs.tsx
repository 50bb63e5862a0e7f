/* tabs.tsx: the parts of a workflow's page. */
import type { ComponentType } from "react";
import type { Workflow } from "../api/types";
import { DefinitionTab } from "./DefinitionTab";
import { LaunchTab } from "./LaunchTab";
import { PlanTab } from "./PlanTab";

export interface WorkflowTab {
  id: string;
  name: string;
  View: ComponentType<{ workflow: Workflow }>;
}

export const WORKFLOW_TABS: WorkflowTab[] = [
  { id: "launch", name: "Launch", View: LaunchTab },
  { id: "plan", name: "Plan", View: PlanTab },
  { id: "definition", name: "Definition", View: DefinitionTab },
];
