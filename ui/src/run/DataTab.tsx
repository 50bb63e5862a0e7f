import { Empty } from "../parts/Empty";
import { JsonView } from "../parts/JsonView";
import { StatusBadge } from "../parts/StatusBadge";
import { useRunLive } from "./live";

/** What went in, and what has come out so far. */
export function DataTab() {
  const { run } = useRunLive();
  const results = Object.entries(run.results ?? {});
  return (
    <div className="run-data">
      <section aria-labelledby="run-input">
        <h2 id="run-input">Input</h2>
        <JsonView value={run.input} label="the input" />
      </section>
      <section aria-labelledby="run-output">
        <h2 id="run-output">Results</h2>
        {results.length === 0 && (
          <Empty icon="clock" title="No results yet" heading="h3">
            <p>What each step of the top level returns will be here.</p>
          </Empty>
        )}
        {results.map(([alias, node]) => (
          <div key={alias} className="run-result">
            <h3>
              <span className="mono">{alias}</span> <StatusBadge status={node.status} />
            </h3>
            {node.status !== "skipped" && <JsonView value={node.result} label={`the result of ${alias}`} />}
            {Object.keys(node.state ?? {}).length > 0 && (
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
