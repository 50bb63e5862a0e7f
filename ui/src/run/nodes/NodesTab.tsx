import { useRef } from "react";
import { Failure } from "../../parts/Failure";
import { lastLine } from "../../parts/lastLine";
import { Loading } from "../../parts/Loading";
import { formatClock } from "../../parts/time";
import { Duration } from "../../parts/Time";
import { attemptsOf } from "./names";
import { NodeSplit } from "./NodeSplit";
import { useRunPlan, useSelected } from "./shared";
import { TreeGrid } from "./TreeGrid";
import { useTree } from "./useTree";

/** The nodes as a tree: everything that is in the graph and the timeline, for eyes, ears and keyboards. */
export function NodesTab() {
  const tree = useTree();
  const { plan } = useRunPlan();
  const [selected, select] = useSelected();
  const scroller = useRef<HTMLDivElement>(null);
  if (tree.loading) return <Loading what="the nodes" />;
  if (tree.error) return <Failure error={tree.error} retry={() => tree.windows.invalidate()} />;
  return (
    <NodeSplit>
      <TreeGrid
        label="Nodes of the run"
        className="nodes-grid"
        tree={tree}
        plan={plan}
        selected={selected}
        onSelect={select}
        scroller={scroller}
        head={
          <>
            <span role="columnheader" className="tree-name">
              Node
            </span>
            <span role="columnheader" className="nodes-error">
              Error
            </span>
            <span role="columnheader" className="nodes-when">
              Started
            </span>
            <span role="columnheader" className="nodes-attempts">
              Attempts
            </span>
            <span role="columnheader" className="nodes-took">
              Took
            </span>
          </>
        }
        cells={(node) => (
          <>
            <span role="gridcell" className="nodes-error" title={node.error?.message}>
              {node.error && node.status === "failed" ? lastLine(node.error.message) : ""}
            </span>
            <span role="gridcell" className="nodes-when muted">
              {node.startedAt !== undefined && (
                <time dateTime={new Date(node.startedAt).toISOString()}>{formatClock(node.startedAt)}</time>
              )}
            </span>
            <span role="gridcell" className="nodes-attempts">
              {attemptsOf(node)}
            </span>
            <span role="gridcell" className="nodes-took">
              <Duration from={node.startedAt} to={node.completedAt} />
            </span>
          </>
        )}
      />
    </NodeSplit>
  );
}
