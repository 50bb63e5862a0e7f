/* Iterations.tsx: choose the iteration that the graph shows. */
import type { RunNode } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { IterationTable } from "../nodes/IterationTable";
import { progressText } from "../nodes/progress";

interface Props {
  owner: RunNode;
  shown: number | undefined;
  onClose: () => void;
  /** null: always the latest */
  onPick: (iteration: number | null) => void;
}

export function Iterations({ owner, shown, onClose, onPick }: Props) {
  return (
    <Dialog open onClose={onClose} title={`Iterations of ${owner.alias}`}>
      <p className="muted">{progressText(owner)}</p>
      <IterationTable owner={owner} shown={shown} onPick={onPick} />
      <div className="actions">
        <button className="button" onClick={() => onPick(null)}>
          Follow the latest
        </button>
      </div>
    </Dialog>
  );
}
