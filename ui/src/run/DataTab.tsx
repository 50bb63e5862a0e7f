import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { Empty } from "../parts/Empty";
import { Failure } from "../parts/Failure";
import { JsonView } from "../parts/JsonView";
import { Loading } from "../parts/Loading";
import { StatusBadge } from "../parts/StatusBadge";
import { useFresh } from "../parts/useFresh";
import { useRunEvents, useRunLive } from "./live";

/** However much happens, the results are read at most this often. */
const READ_MS = 1000;

/** What went in, and what has come out so far. */
export function DataTab() {
  const { runId, run } = useRunLive();
  const whole = useQuery({ queryKey: ["whole run", runId], queryFn: ({ signal }) => api.runWhole(runId, signal), staleTime: 0 });
  const { refetch } = whole;
  const readSoon = useFresh(whole.isFetching, () => void refetch(), READ_MS);
  useRunEvents({
    onEvents: (events) => {
      if (events.some((event) => /^(run|node|step)\./.test(event.kind) && !event.path?.includes(":"))) readSoon();
    },
    onOpen: readSoon,
  });
  const results = Object.entries(whole.data?.results ?? {});
  return (
    <div className="run-data">
      <section aria-labelledby="run-input">
        <h2 id="run-input">Input</h2>
        <JsonView value={run.input} label="the input" />
      </section>
      <section aria-labelledby="run-output">
        <h2 id="run-output">Results</h2>
        {whole.error && <Failure error={whole.error} retry={() => void refetch()} />}
        {whole.isPending && <Loading what="the results" />}
        {whole.data && results.length === 0 && (
          <Empty icon="clock" title="No results yet" heading="h3">
            <p>What each step of the top level returns will be here.</p>
          </Empty>
        )}
        {results.map(([alias, node]) => (
          <div key={alias} className="run-result">
            <h3>
              <span className="mono">{alias}</span> <StatusBadge status={node.status} />
            </h3>
            {typeof node.state?.description === "string" && <p className="muted">{node.state.description}</p>}
            {node.status !== "skipped" && <JsonView value={node.result} label={`the result of ${alias}`} />}
            {Object.keys(node.state ?? {}).some((key) => key !== "description" && key !== "skipped") && (
              <details>
                <summary>State</summary>
                <JsonView value={node.state} label={`the state of ${alias}`} />
              </details>
            )}
          </div>
        ))}
      </section>
    </div>
  );
}
