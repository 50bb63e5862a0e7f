import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type RefObject } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { RunNode } from "../api/types";
import { runPath } from "../app/paths";
import { Empty } from "../parts/Empty";
import { Failure } from "../parts/Failure";
import { JsonView } from "../parts/JsonView";
import { Loading } from "../parts/Loading";
import { StatusBadge } from "../parts/StatusBadge";
import { useRunLive } from "./live";
import { useWanted, useWindows } from "./nodes/shared";
import { PAGE } from "./nodes/windows";

/** A result is read a little before it is scrolled to. */
const AHEAD = "400px";

/** What went in, and what has come out so far: of each node when it is looked at. Iterations have the tab Nodes. */
export function DataTab() {
  const { run } = useRunLive();
  return (
    <div className="run-data">
      <section aria-labelledby="run-input">
        <h2 id="run-input">Input</h2>
        <JsonView value={run.input} label="the input" />
      </section>
      <section aria-labelledby="run-output">
        <h2 id="run-output">Results</h2>
        <Results parent="" />
      </section>
    </div>
  );
}

/** Of the nodes in one. */
function Results({ parent }: { parent: string }) {
  const windows = useWindows();
  const [pages, setPages] = useState(1);
  useWanted(
    windows,
    Array.from({ length: pages }, (_, page) => ({ parent, page })),
  );
  const total = windows.total(parent);
  const nodes = Array.from({ length: pages }, (_, page) => windows.window(parent, page)?.nodes ?? []).flat();
  const begun = nodes.filter((node) => node.status !== "pending");
  if (total === undefined) {
    const error = windows.error(parent);
    return error ? <Failure error={error} retry={() => windows.invalidate()} /> : <Loading what="the results" />;
  }
  return (
    <>
      {parent === "" && begun.length === 0 && (
        <Empty icon="clock" title="No results yet" heading="h3">
          <p>What each step returns will be here.</p>
        </Empty>
      )}
      {begun.map((node) => (
        <Result key={node.path} node={node} />
      ))}
      {total > pages * PAGE && (
        <button className="button" onClick={() => setPages(pages + 1)}>
          Show more
        </button>
      )}
    </>
  );
}

function Result({ node }: { node: RunNode }) {
  const { runId } = useRunLive();
  const place = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(place);
  const isStep = node.kind === "step" || node.kind === "handler";
  const hasIterations = node.kind === "forEach" || node.kind === "loop";
  const { data, error, refetch } = useQuery({
    queryKey: ["node", runId, node.path, node.status, node.completedAt],
    queryFn: ({ signal }) => api.node(runId, node.path, signal),
    enabled: isSeen && isStep && node.completedAt !== undefined && node.status !== "skipped",
  });
  const { description, ...state } = data?.state ?? {};
  return (
    <div className="run-result" ref={place}>
      <h3>
        <span className="mono">{node.alias}</span> <StatusBadge status={node.status} />
      </h3>
      {typeof description === "string" && <p className="muted">{description}</p>}
      {error && <Failure error={error} retry={() => void refetch()} />}
      {data && <JsonView value={data.result ?? null} label={`the result of ${node.alias}`} />}
      {isStep && isSeen && !data && node.completedAt !== undefined && node.status !== "skipped" && !error && (
        <Loading what="the result" />
      )}
      {hasIterations && node.children > 0 && (
        <p>
          <Link href={runPath(runId, `/nodes?${new URLSearchParams({ node: node.path }).toString()}`)}>
            What is in {node.alias}
          </Link>
        </p>
      )}
      {!isStep && !hasIterations && node.children > 0 && isSeen && (
        <div className="run-inner">
          <Results parent={node.path} />
        </div>
      )}
      {Object.keys(state).some((key) => key !== "skipped") && (
        <details>
          <summary>State</summary>
          <JsonView value={state} label={`the state of ${node.alias}`} />
        </details>
      )}
    </div>
  );
}

/** Has it been on the screen, or nearly? */
function useSeen(place: RefObject<HTMLElement | null>): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (!element || isSeen) return;
    const watcher = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true),
      {
        rootMargin: AHEAD,
      },
    );
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [place, isSeen]);
  return isSeen;
}
