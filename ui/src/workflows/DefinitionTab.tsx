import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Json, Workflow } from "../api/types";
import { CopyButton } from "../parts/CopyButton";
import { JsonView } from "../parts/JsonView";

/** Where it comes from, and exactly what it is. */
export function DefinitionTab({ workflow }: { workflow: Workflow }) {
  return (
    <div className="definition">
      <dl className="facts">
        <div>
          <dt>Version</dt>
          <dd className="mono">
            {workflow.version} <CopyButton text={workflow.version} what="the version" />
          </dd>
        </div>
        {workflow.source && (
          <div>
            <dt>Source</dt>
            <dd className="mono">{workflow.source}</dd>
          </div>
        )}
      </dl>
      <Source workflow={workflow} />
      <section aria-labelledby="definition-input">
        <h2 id="definition-input">Input schema</h2>
        {workflow.inputSchema === undefined || workflow.inputSchema === null ? (
          <p className="muted">None: it takes any JSON.</p>
        ) : (
          <JsonView value={workflow.inputSchema} label="the input schema" />
        )}
      </section>
      <section aria-labelledby="definition-plan">
        <h2 id="definition-plan">Plan, as JSON</h2>
        <JsonView value={workflow.plan as unknown as Json} label="the plan" />
      </section>
    </div>
  );
}

/** The file, as its author wrote it. */
function Source({ workflow }: { workflow: Workflow }) {
  const { data } = useQuery({
    queryKey: ["source", workflow.name, workflow.version],
    queryFn: ({ signal }) => api.source(workflow.name, signal),
    enabled: Boolean(workflow.source), // of a program's own there is none
  });
  if (!data) return null;
  return (
    <section aria-labelledby="definition-source">
      <h2 id="definition-source">
        As it was written <CopyButton text={data.text} what="the source" />
      </h2>
      <pre className="workflow-source" tabIndex={0}>
        <code>{data.text}</code>
      </pre>
    </section>
  );
}
