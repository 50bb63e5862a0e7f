import { Link, useLocation, useSearchParams } from "wouter";
import { ApiError } from "../api/client";
import type { Run } from "../api/types";
import { NotFound } from "../app/NotFound";
import { runPath } from "../app/paths";
import { useShortcuts } from "../app/shortcuts";
import { useTitle } from "../app/title";
import { CopyButton } from "../parts/CopyButton";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { StatusBadge } from "../parts/StatusBadge";
import { Tabs } from "../parts/Tabs";
import { Duration, When } from "../parts/Time";
import { RunActions } from "./RunActions";
import { RunLiveContext, useRunSource } from "./live";
import { NodesProvider } from "./nodes/shared";
import "./run.css";
import { RUN_TABS, type RunTab } from "./tabs";
import { Waits } from "./Waits";

export function RunPage({ runId, tab }: { runId: string; tab: string | undefined }) {
  const { query, live } = useRunSource(runId);
  const [, navigate] = useLocation();
  const [params] = useSearchParams();
  // The node that is looked at is the same in each of its views.
  const hrefOf = (to: RunTab) => runPath(runId, `/${to.id}${to.ofNodes && params.has("node") ? `?${new URLSearchParams({ node: params.get("node")! }).toString()}` : ""}`);
  const current = tab === undefined ? RUN_TABS[0] : RUN_TABS.find((each) => each.id === tab);
  useTitle(query.data ? `${query.data.workflow} ${runId}: ${query.data.status}` : runId);
  useShortcuts(Object.fromEntries(RUN_TABS.map((each, i) => [String(i + 1), () => navigate(hrefOf(each))])));

  if (!current) return <NotFound />;
  if (!live) {
    if (query.error instanceof ApiError && query.error.status === 404) return <NotFound what={`The run ${runId}`} why="Its id may be mistyped, or it has been removed by retention." />;
    return query.error ? <Failure error={query.error} retry={() => void query.refetch()} /> : <Loading what="the run" />;
  }
  return (
    <RunLiveContext.Provider value={live}>
      <div className="page run-page">
        <RunHead run={live.run} />
        <Waits />
        <Tabs
          label="Parts of the run"
          current={current.id}
          tabs={RUN_TABS.map((each) => ({ id: each.id, name: each.name, href: hrefOf(each) }))}
        />
        <NodesProvider>
          <current.View />
        </NodesProvider>
      </div>
    </RunLiveContext.Provider>
  );
}

function RunHead({ run }: { run: Run }) {
  return (
    <div className="run-head">
      <div className="page-head">
        <div>
          <p className="crumbs">
            <Link href="/runs">Runs</Link> /{" "}
            <Link href={`/workflows/${encodeURIComponent(run.workflow)}`}>{run.workflow}</Link>
          </p>
          <h1 className="run-title">
            <span className="run-id">{run.runId}</span>
            <CopyButton text={run.runId} what="the run's id" />
          </h1>
        </div>
        <RunActions run={run} />
      </div>
      <dl className="run-facts">
        <div>
          <dt>Status</dt>
          <dd aria-live="polite">
            <StatusBadge status={run.status} />
          </dd>
        </div>
        <div>
          <dt>Started</dt>
          <dd>
            <When at={run.startedAt ?? run.createdAt} />
          </dd>
        </div>
        <div>
          <dt>{run.completedAt ? "Took" : "So far"}</dt>
          <dd>
            <Duration from={run.startedAt} to={run.completedAt} />
          </dd>
        </div>
        {run.completedAt && (
          <div>
            <dt>Ended</dt>
            <dd>
              <When at={run.completedAt} />
            </dd>
          </div>
        )}
        <div>
          <dt>Version</dt>
          <dd className="mono" title={run.version}>
            {run.version.slice(0, 8)}
          </dd>
        </div>
      </dl>
      {run.error && (
        <div className="run-error" role="group" aria-label="Error">
          <strong>{run.failedStep ? `${run.failedStep} failed` : "The run failed"}</strong>
          <p>{run.error.message}</p>
        </div>
      )}
    </div>
  );
}
