/* shared.tsx: what graph, timeline and tree have in common: the windows on the run's nodes, its plan, and
 * which node is looked at, which stands in the address. */
import { useQuery } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";
import { useSearchParams } from "wouter";
import { api } from "../../api/client";
import { useRunEvents, useRunLive } from "../live";
import { boxesOf, byKey, type Box } from "../plan";
import { NodeWindows, type WindowKey } from "./windows";

const NodesContext = createContext<NodeWindows | null>(null);

export function NodesProvider({ children }: { children: ReactNode }) {
  const { runId } = useRunLive();
  const windows = useMemo(
    () =>
      new NodeWindows({ load: (parent, offset, limit, status) => api.nodes(runId, { parent, offset, limit, status }) }),
    [runId],
  );
  useRunEvents({ onEvents: (events) => windows.events(events), onOpen: () => windows.invalidate() });
  return <NodesContext.Provider value={windows}>{children}</NodesContext.Provider>;
}

/** The windows, and a render for each frame in which something in them changed. */
export function useWindows(): NodeWindows {
  const windows = useContext(NodesContext);
  if (!windows) throw new Error("useWindows is for what is inside NodesProvider");
  useSyncExternalStore(windows.subscribe, windows.getVersion);
  return windows;
}

/** While the component is there, these windows are kept fresh. */
export function useWanted(windows: NodeWindows, keys: WindowKey[]): void {
  const [me] = useState(() => ({}));
  const text = keys.map((key) => `${key.page} ${key.parent}`).join("\n");
  useEffect(() => {
    const wanted =
      text === ""
        ? []
        : text.split("\n").map((line) => ({ page: parseInt(line, 10), parent: line.slice(line.indexOf(" ") + 1) }));
    windows.want(me, wanted);
  }, [windows, me, text]);
  useEffect(() => () => windows.want(me, []), [windows, me]);
}

export interface RunPlan {
  top: Box[];
  boxes: Map<string, Box>;
}

const NO_PLAN: RunPlan = { top: [], boxes: new Map() };

/** The plan that the run is pinned to, as boxes. */
export function useRunPlan(): { plan: RunPlan; error: unknown; loading: boolean; retry: () => void } {
  const { runId } = useRunLive();
  const query = useQuery({
    queryKey: ["plan", runId],
    queryFn: ({ signal }) => api.runPlan(runId, signal),
    staleTime: Infinity,
  });
  const plan = useMemo(() => {
    if (!query.data) return NO_PLAN;
    const top = boxesOf(query.data);
    return { top, boxes: byKey(top) };
  }, [query.data]);
  return { plan, error: query.error, loading: query.isPending, retry: () => void query.refetch() };
}

/** Where views of nodes unfold to: the node that is looked at, else the one that made the run fail. */
export function useGoal(): string | null {
  const [selected] = useSelected();
  const { run } = useRunLive();
  return selected ?? run.failedPath ?? run.failedStep ?? null;
}

/** The path of the node that is looked at, and how to look at another one. */
export function useSelected(): [string | null, (path: string | null) => void] {
  const [params, setParams] = useSearchParams();
  const select = (path: string | null) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        if (path) next.set("node", path);
        else next.delete("node");
        return next;
      },
      { replace: true },
    );
  return [params.get("node"), select];
}
