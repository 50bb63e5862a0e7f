/* tabs.tsx: the parts of the run page, in their order; the first is shown when the address names none. */
import type { ComponentType } from "react";
import { DataTab } from "./DataTab";
import { LogsTab } from "./logs/LogsTab";

export interface RunTab {
  id: string;
  name: string;
  View: ComponentType;
}

export const RUN_TABS: RunTab[] = [
  { id: "logs", name: "Logs", View: LogsTab },
  { id: "data", name: "Input & output", View: DataTab },
];
