/* tabs.tsx: the parts of the run page, in their order; the first is shown when the address names none. */
import type { ComponentType } from "react";
import { AttachmentsTab } from "./attachments/AttachmentsTab";
import { ChatTab } from "./chat/ChatTab";
import { DataTab } from "./DataTab";
import { GraphTab } from "./graph/GraphTab";
import { HistoryTab } from "./history/HistoryTab";
import { LogsTab } from "./logs/LogsTab";
import { NodesTab } from "./nodes/NodesTab";
import { hasChats, hasStages, type Box } from "./plan";
import { TimelineTab } from "./timeline/TimelineTab";

export interface RunTab {
  id: string;
  name: string;
  View: ComponentType;
  /** shows nodes, one of which can be looked at */
  ofNodes?: true;
  /** only runs of such plans have it */
  of?: (top: Box[]) => boolean;
}

export const RUN_TABS: RunTab[] = [
  { id: "graph", name: "Graph", View: GraphTab, ofNodes: true },
  { id: "timeline", name: "Timeline", View: TimelineTab, ofNodes: true },
  { id: "nodes", name: "Nodes", View: NodesTab, ofNodes: true },
  { id: "logs", name: "Logs", View: LogsTab },
  { id: "data", name: "Input & output", View: DataTab },
  { id: "history", name: "History", View: HistoryTab },
  { id: "attachments", name: "Attachments", View: AttachmentsTab, of: hasStages },
  { id: "chat", name: "Chat", View: ChatTab, of: hasChats },
];
