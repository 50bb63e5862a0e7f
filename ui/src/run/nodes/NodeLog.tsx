/* NodeLog.tsx: what one node said, on its card: the end of it, which is where the reason is. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../../api/client";
import { runPath } from "../../app/paths";
import { useFresh } from "../../parts/useFresh";
import { useRunEvents, useRunLive } from "../live";
import { LineTime, Message } from "../logs/Line";
import { count } from "./names";

/** So many lines are read, and of those the last ones shown; who wants more has the tab Logs. */
const READ = 1000;
const SHOWN = 100;
/** However much it says, it is read at most this often. */
const READ_MS = 1000;

interface Props {
  path: string;
  /** the attempt that failed */
  fatal: number | "last" | undefined;
}

export function NodeLog({ path, fatal }: Props) {
  const { runId } = useRunLive();
  const { data, isFetching, refetch } = useQuery({
    queryKey: ["log", runId, path],
    queryFn: ({ signal }) => api.logs(runId, { path, limit: READ }, signal),
  });
  const read = useFresh(isFetching, () => void refetch(), READ_MS);
  useRunEvents({
    onEvents: (events) => {
      if (events.some((event) => event.kind === "log" && (event.path === path || event.path?.startsWith(`${path}:`))))
        read();
    },
    onOpen: read,
  });
  if (!data) return null;
  const lines = data.logs.slice(-SHOWN);
  const before = data.logs.length - lines.length;
  const failed = fatal === "last" ? lines.at(-1)?.attempt : fatal;
  const all = runPath(runId, `/logs?${new URLSearchParams({ in: path }).toString()}`);
  return (
    <section className="node-log" aria-label="Log of this node">
      <h3>
        Log <Link href={all}>Open in Logs</Link>
      </h3>
      {lines.length === 0 && <p className="muted">It said nothing.</p>}
      {before > 0 && <p className="muted">{count(before)} lines before these</p>}
      {lines.length > 0 && (
        <div className="node-log-lines" tabIndex={0} role="group" aria-label="Lines">
          {lines.map((line) => (
            <div key={line.id} className={`log-line level-${line.attempt === failed ? "error" : line.level}`}>
              <LineTime line={line} />
              <Message line={line} />
            </div>
          ))}
        </div>
      )}
      {data.logs.length === READ && <p className="muted">There may be more.</p>}
    </section>
  );
}
