/* HomePage.tsx: what to look at first: what needs somebody, what fails, what is slow, and how the server is.
 *
 * The server counts (GET /overview), so that a day of any number of runs is told whole. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, type ReactNode } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { LongWaiting, Overview, WorkflowFared } from "../api/types";
import { useFeed } from "../api/useFeed";
import { runPath } from "../app/paths";
import { useTitle } from "../app/title";
import { formatBytes } from "../parts/bytes";
import { Failure } from "../parts/Failure";
import { lastLine } from "../parts/lastLine";
import { StatusBadge } from "../parts/StatusBadge";
import { formatAbsolute, formatDuration } from "../parts/time";
import { When } from "../parts/Time";
import { useFresh } from "../parts/useFresh";
import { figuresOf } from "./figures";
import "./home.css";

const SHOWN = 6;
/** However much happens, it is read at most this often. */
const READ_MS = 5000;
/** While the server still counts. */
const COUNTING_MS = 500;

export function HomePage() {
  useTitle("Home");
  const overview = useQuery({ queryKey: ["home", "overview"], queryFn: ({ signal }) => api.overview(signal) });
  const figures = useQuery({ queryKey: ["home", "figures"], queryFn: ({ signal }) => api.metrics(signal) });
  const members = useQuery({ queryKey: ["members"], queryFn: ({ signal }) => api.members(signal) });
  const all = [overview, figures, members];
  const read = useFresh(
    all.some((query) => query.isFetching),
    () => all.forEach((query) => void query.refetch()),
    READ_MS,
  );
  useFeed({
    kinds: "run.",
    onEvents: read,
    // What was read a moment ago is not read again because a stream begins.
    onOpen: () => {
      if (all.some((query) => query.dataUpdatedAt > 0 && Date.now() - query.dataUpdatedAt > READ_MS)) read();
    },
  });
  const { data, refetch, dataUpdatedAt } = overview;
  useEffect(() => {
    if (!data || data.complete) return;
    const timer = window.setTimeout(() => void refetch(), COUNTING_MS);
    return () => window.clearTimeout(timer);
  }, [data, refetch, dataUpdatedAt]);

  const failing = data?.workflows.filter((each) => each.failed > 0).sort((a, b) => b.failed - a.failed);
  const slow = data?.workflows.filter((each) => each.slowest).sort((a, b) => b.slowest!.duration - a.slowest!.duration);
  const hint = data?.complete === false ? "Last 24 hours, being counted" : "Last 24 hours";
  const isNew = data !== undefined && Object.values(data.counts).every((n) => n === 0);
  return (
    <div className="page home">
      <div className="page-head">
        <h1>Home</h1>
      </div>
      {all.map((query, i) => query.error && <Failure key={i} error={query.error} retry={() => void query.refetch()} />)}
      {isNew && <FirstLaunch />}
      <div className="home-parts">
        <Part id="waiting" title="Needs somebody" more="/runs?waiting=somebody" count={data?.counts.waiting}>
          {data && <Waiting runs={data.oldestWaiting} />}
        </Part>
        <Part id="fails" title="What fails" hint={hint} more="/runs?status=failed&since=24h">
          {failing && (failing.length === 0 ? <p className="muted">Nothing failed.</p> : <Failing all={failing} />)}
        </Part>
        <Part id="slow" title="What is slow" hint={hint}>
          {slow && (slow.length === 0 ? <p className="muted">Nothing has completed.</p> : <Slow all={slow} />)}
        </Part>
        <Part id="health" title="Store and engine">
          {data && figures.data !== undefined && (
            <Health overview={data} figures={figuresOf(figures.data)} members={members.data?.members.length ?? 0} />
          )}
        </Part>
      </div>
    </div>
  );
}

/** Nothing ever ran here: where to begin. */
function FirstLaunch() {
  return (
    <section className="card home-part home-first" aria-labelledby="home-first">
      <div className="home-head">
        <h2 id="home-first">Nothing has run yet</h2>
      </div>
      <p>
        A workflow is launched from its page, by a form for its input. To write a new one, run{" "}
        <code>rival new hello</code> in the folder that the server serves.
      </p>
      <p>
        <Link className="button primary" href="/workflows">
          Choose a workflow to launch
        </Link>
      </p>
    </section>
  );
}

interface PartProps {
  id: string;
  title: string;
  hint?: string;
  more?: string;
  count?: number;
  children: ReactNode;
}

function Part({ id, title, hint, more, count, children }: PartProps) {
  return (
    <section className="card home-part" aria-labelledby={`home-${id}`}>
      <div className="home-head">
        <h2 id={`home-${id}`}>{title}</h2>
        {count !== undefined && count > 0 && <span className="home-count">{count.toLocaleString("en")}</span>}
        {hint && <span className="muted">{hint}</span>}
        {more && (
          <Link className="home-more" href={more} aria-label={`All: ${title}`}>
            All
          </Link>
        )}
      </div>
      {children}
    </section>
  );
}

function Waiting({ runs }: { runs: readonly LongWaiting[] }) {
  if (runs.length === 0) return <p className="muted">Nothing waits for anybody.</p>;
  return (
    <ul className="home-list home-waiting" aria-label="The oldest that wait">
      {runs.slice(0, SHOWN).map((run) => (
        <li key={run.runId}>
          <StatusBadge status={run.status} />
          <span className="home-name">
            <Link href={runPath(run.runId)}>{run.runId}</Link> <span className="muted">{run.workflow}</span>
            {run.suspension && <span className="muted"> · {lastLine(run.suspension.message)}</span>}
          </span>
          <When at={run.createdAt} />
        </li>
      ))}
    </ul>
  );
}

function Failing({ all }: { all: readonly WorkflowFared[] }) {
  return (
    <ul className="home-list">
      {all.slice(0, SHOWN).map((each) => (
        <li key={each.workflow}>
          <span className="home-name">
            <Link
              href={`/runs?${new URLSearchParams({ status: "failed", workflow: each.workflow, since: "24h" }).toString()}`}
            >
              {each.workflow}
            </Link>{" "}
            <span className="muted">
              {each.failed.toLocaleString("en")} of {each.ended.toLocaleString("en")} failed
            </span>
          </span>
          <Bars fared={each} />
          <span className="home-rate status-failed">{Math.round((100 * each.failed) / each.ended)} %</span>
        </li>
      ))}
    </ul>
  );
}

/** A bar for each hour: as high as its share of failures, empty where nothing ended. */
function Bars({ fared: { hours } }: { fared: WorkflowFared }) {
  return (
    <svg className="home-bars" viewBox={`0 0 ${hours.length * 4} 20`} aria-hidden="true" preserveAspectRatio="none">
      {hours.map(({ ended, failed }, i) => {
        const high = ended === 0 ? 0 : Math.max(failed > 0 ? 2 : 0, (18 * failed) / ended);
        return (
          <g key={i}>
            {ended > 0 && <rect className="home-bar-all" x={i * 4} y={19} width={3} height={1} />}
            {high > 0 && <rect className="home-bar-failed" x={i * 4} y={19 - high} width={3} height={high} />}
          </g>
        );
      })}
    </svg>
  );
}

function Slow({ all }: { all: readonly WorkflowFared[] }) {
  return (
    <ul className="home-list">
      {all.slice(0, SHOWN).map(({ workflow, slowest, medianMs }) => (
        <li key={workflow}>
          <span className="home-name">
            {workflow} <span className="muted">usually {formatDuration(medianMs ?? 0)}</span>
          </span>
          <Link href={runPath(slowest!.runId, "/timeline")} aria-label={`The slowest run of ${workflow}`}>
            {formatDuration(slowest!.duration)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

interface HealthProps {
  overview: Overview;
  figures: Map<string, number>;
  /** that share the store; 0: one process drives it */
  members: number;
}

function Health({ overview, figures, members }: HealthProps) {
  const { counts, health } = overview;
  const of = (name: string) => figures.get(name) ?? 0;
  const commits = of("rival_commit_seconds_count");
  const facts: [string, ReactNode, boolean?][] = [
    [
      "Writes",
      health.ok ? "taken" : `refused since ${formatAbsolute(health.since ?? 0)}: ${health.reason ?? ""}`,
      !health.ok,
    ],
    ...(members > 0 ? [["Members", <Link href="/members">{members}</Link>] as [string, ReactNode]] : []),
    ["Runs under way", (counts.running + counts.suspended).toLocaleString("en")],
    ["Workers busy", `${of("rival_workers_busy")} of ${of("rival_workers")}`],
    ["Store", formatBytes(health.bytes)],
    ["Write-ahead log", formatBytes(of("rival_wal_bytes"))],
    ["A commit takes", commits === 0 ? "–" : formatDuration((1000 * of("rival_commit_seconds_sum")) / commits)],
    [
      "Commits that failed",
      of("rival_commit_failures_total").toLocaleString("en"),
      of("rival_commit_failures_total") > 0,
    ],
  ];
  return (
    <dl className="home-facts">
      {facts.map(([name, value, isBad]) => (
        <div key={name} className={isBad ? "home-bad" : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
