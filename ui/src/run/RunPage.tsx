import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { api, ApiError } from "../api/client";
import type { FeedEvent, Run } from "../api/types";
import { NotFound } from "../app/NotFound";
import { runPath } from "../app/paths";
import { useShortcuts } from "../app/shortcuts";
import { useTitle } from "../app/title";
import { Boundary } from "../parts/Boundary";
import { CopyButton } from "../parts/CopyButton";
import { ErrorBlock } from "../parts/ErrorBlock";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { StatusBadge } from "../parts/StatusBadge";
import { Tabs } from "../parts/Tabs";
import { formatAbsolute, formatClock } from "../parts/time";
import { Duration } from "../parts/Time";
import { isStart, sayingOfAct, useActs } from "./acts";
import { RunActions } from "./RunActions";
import { isTerminal, RunLiveContext, useRunLive, useRunSource } from "./live";
import { NodesProvider, useRunPlan } from "./nodes/shared";
import { wayText } from "./plan";
import "./run.css";
import { tabIn } from "./tabNames";
import { RUN_TABS, type RunTab } from "./tabs";
import { Waits } from "./Waits";

export function RunPage({ runId, tab }: { runId: string; tab: string | undefined }) {
  const { query, live } = useRunSource(runId);
  const [, navigate] = useLocation();
  const [params] = useSearchParams();
  // The node that is looked at is the same in each of its views.
  const hrefOf = (to: RunTab) =>
    runPath(
      runId,
      `/${to.id}${to.ofNodes && params.has("node") ? `?${new URLSearchParams({ node: params.get("node")! }).toString()}` : ""}`,
    );
  const current = tab === undefined ? RUN_TABS[0] : RUN_TABS.find((each) => each.id === tab);
  useTitle(query.data ? `${query.data.workflow} ${runId}: ${query.data.status}` : runId);
  useShortcuts(Object.fromEntries(RUN_TABS.map((each, i) => [String(i + 1), () => navigate(hrefOf(each))])));

  if (!current) return <NotFound />;
  if (!live) {
    if (query.error instanceof ApiError && query.error.status === 404)
      return <NotFound what={`The run ${runId}`} why="Its id may be mistyped, or it has been removed by retention." />;
    return query.error ? (
      <Failure error={query.error} retry={() => void query.refetch()} />
    ) : (
      <Loading what="the run" />
    );
  }
  return (
    <RunLiveContext.Provider value={live}>
      <div className="page run-page">
        <RunHead run={live.run} />
        <Waits />
        <RunTabs current={current.id} hrefOf={hrefOf} />
        <NodesProvider>
          <Boundary at={`${current.id} ${params.toString()}`} fallback={(error) => <Failure error={error} />}>
            <current.View />
          </Boundary>
        </NodesProvider>
      </div>
    </RunLiveContext.Provider>
  );
}

function RunTabs({ current, hrefOf }: { current: string; hrefOf: (tab: RunTab) => string }) {
  const { plan } = useRunPlan();
  const tabs = RUN_TABS.filter((each) => !each.of || each.of(plan.top) || each.id === current);
  return (
    <Tabs
      label="Parts of the run"
      current={current}
      tabs={tabs.map((each) => ({ id: each.id, name: each.name, href: hrefOf(each) }))}
    />
  );
}

/** `tables #2 › rows #4 › insert`: what failed, and the way to it in the view that is open. */
function FailureLink({ run }: { run: Run }) {
  const { plan } = useRunPlan();
  const path = run.failedPath ?? run.failedStep;
  const [location] = useLocation();
  if (!path) return null;
  const query = new URLSearchParams({ node: path }).toString();
  return (
    <span className="error-way">
      in <Link href={runPath(run.runId, `/${tabIn(location)}?${query}`)}>{wayText(plan.boxes, path)}</Link>
    </span>
  );
}

/** One line that stays where it is; below it, if the run failed, why. */
function RunHead({ run }: { run: Run }) {
  const started = run.startedAt ?? run.createdAt;
  const acts = useActs(run.runId);
  return (
    <div className="run-head">
      <div className="run-line">
        <h1 className="run-title">
          <Link href={`/workflows/${encodeURIComponent(run.workflow)}`}>{run.workflow}</Link>
          <span className="run-id">{run.runId}</span>
          <CopyButton text={run.runId} what="the run's id" />
        </h1>
        <p className="run-facts">
          <span aria-live="polite">
            <StatusBadge status={run.status} />
          </span>
          <span className="run-duration" title={run.completedAt ? "How long it took" : "How long it has been running"}>
            <Duration from={run.startedAt} to={run.completedAt} />
          </span>
          <time
            className="muted tabular"
            dateTime={new Date(started).toISOString()}
            title={`Started; version ${run.version}`}
          >
            {formatAbsolute(started)}
          </time>
          {acts[0] && isStart(acts[0]) && <span className="muted run-by">by {acts[0].by}</span>}
        </p>
        <RunActions run={run} />
      </div>
      <Repeats run={run} />
      <Acts acts={acts} />
      {run.error && (
        <ErrorBlock label="Error" name="Error of the run" text={run.error.message} where={<FailureLink run={run} />} />
      )}
    </div>
  );
}

/** So many of them are told; the rest is in the history. */
const ACTS = 5;

/** What somebody did since the start: the latest last. */
function Acts({ acts }: { acts: FeedEvent[] }) {
  const { runId } = useRunLive();
  const { plan } = useRunPlan();
  const later = acts.filter((act) => !isStart(act));
  if (later.length === 0) return null;
  return (
    <ul className="run-acts muted" aria-label="What somebody did">
      {later.length > ACTS && (
        <li>
          <Link href={runPath(runId, "/history")}>{(later.length - ACTS).toLocaleString("en")} before these</Link>
        </li>
      )}
      {later.slice(-ACTS).map((act) => (
        <li key={`${act.seq}.${act.index}`}>
          {sayingOfAct(act, (path) => wayText(plan.boxes, path))}{" "}
          <time className="tabular" dateTime={new Date(act.at).toISOString()} title={formatAbsolute(act.at)}>
            {formatClock(act.at)}
          </time>
        </li>
      ))}
    </ul>
  );
}

/** So many are named. */
const REPEATS = 3;

/** The run that this one repeats, and those that repeat it. */
function Repeats({ run }: { run: Run }) {
  const ended = isTerminal(run.status);
  const { data } = useQuery({
    queryKey: ["repeats", run.runId],
    queryFn: ({ signal }) => api.runs({ rerunOf: run.runId, limit: REPEATS }, signal),
    enabled: ended, // only such are run again
    staleTime: 0,
  });
  const later = data?.runs ?? [];
  if (!run.rerunOf && later.length === 0) return null;
  return (
    <p className="run-repeats muted">
      {run.rerunOf && (
        <span>
          Repeats <Link href={runPath(run.rerunOf)}>{run.rerunOf}</Link>
        </span>
      )}
      {later.length > 0 && (
        <span>
          Run again as{" "}
          {later.map((each, i) => (
            <Fragment key={each.runId}>
              {i > 0 && ", "}
              <Link href={runPath(each.runId)}>{each.runId}</Link> ({each.status})
            </Fragment>
          ))}
          {data?.nextCursor && " …"}
        </span>
      )}
    </p>
  );
}
