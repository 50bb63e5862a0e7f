/* RunTable.tsx: the runs, as many rows as fit on the screen, however many there are. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import type { RunSummary } from "../api/types";
import { runPath } from "../app/paths";
import { useMayOperate } from "../app/session";
import { useShortcuts } from "../app/shortcuts";
import { Empty } from "../parts/Empty";
import { Failure } from "../parts/Failure";
import { Icon } from "../parts/Icon";
import { Loading } from "../parts/Loading";
import { lastLine } from "../parts/lastLine";
import { useNarrow } from "../parts/useNarrow";
import { StatusBadge } from "../parts/StatusBadge";
import { Duration, When } from "../parts/Time";
import { BulkBar } from "./BulkBar";
import { isFiltered, queryOf, type RunFilter } from "./filters";
import { keepList, keptList } from "./kept";
import type { RunRows } from "./runList";
import { Matching } from "./Matching";
import { countOf, useCounts } from "./counts";
import { useRunList } from "./useRunList";

const ROW_PX = 36;
/** On a phone a row has two lines. */
const NARROW_ROW_PX = 57;
/** The next page is asked for when so many rows are left below. */
const AHEAD = 40;
/** Scrolled no further than this: new runs may come in at the top. */
const TOP_PX = 120;

interface Props {
  filter: RunFilter;
  /** under which the list is kept for who comes back */
  kept: string;
  onClear: () => void;
}

export function RunTable({ filter, kept, onClear }: Props) {
  const [query] = useState(() => queryOf(filter, Date.now()));
  const [before] = useState(() => keptList(kept));
  const source = useRunList(query, () => window.scrollY <= TOP_PX, before?.list);
  const narrow = useNarrow();
  const rows = source.list.rows;
  const mayOperate = useMayOperate();
  const [, navigate] = useLocation();
  const [isMatching, setMatching] = useState(false);
  const { data: counts } = useCounts();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const body = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  const active = useRef(-1);

  const present = rows.length > 0;
  useEffect(() => {
    if (body.current) setOffset(body.current.offsetTop);
  }, [present, selected.size, source.news]);

  const windowed = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (narrow ? NARROW_ROW_PX : ROW_PX),
    overscan: 10,
    scrollMargin: offset,
    getItemKey: (index) => rows[index]?.runId ?? index,
  });
  useEffect(() => windowed.measure(), [narrow, windowed]);
  useKept(kept, source.list, before?.scroll);
  const items = windowed.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? -1;
  const { loadMore } = source;
  useEffect(() => {
    if (lastShown >= rows.length - AHEAD) loadMore();
  }, [lastShown, rows.length, loadMore]);

  function toggle(runId: string) {
    const next = new Set(selected);
    if (!next.delete(runId)) next.add(runId);
    setMatching(false);
    setSelected(next);
  }
  function step(by: number) {
    if (rows.length === 0) return;
    active.current = Math.min(rows.length - 1, Math.max(0, active.current + by));
    const index = active.current;
    windowed.scrollToIndex(index);
    requestAnimationFrame(() => body.current?.querySelector<HTMLElement>(`[data-index="${index}"] a`)?.focus());
  }
  useShortcuts({
    j: () => step(1),
    k: () => step(-1),
    x: () => {
      const row = rows[active.current];
      if (row && mayOperate) toggle(row.runId);
    },
    Enter: () => {
      const row = rows[active.current];
      if (row) navigate(hrefOf(row));
    },
  });

  if (source.loading) return <Loading what="the runs" />;
  if (source.error && !present) return <Failure error={source.error} retry={source.refresh} />;
  if (!present) return <NoRuns filter={filter} onClear={onClear} />;

  const all = rows.every((row) => selected.has(row.runId));
  const matching = source.list.cursor === null ? rows.length : countOf(filter, counts);
  function clear() {
    setMatching(false);
    setSelected(new Set());
  }
  return (
    <>
      <div className="runs-bar">
        {mayOperate && isMatching && <Matching query={query} count={matching} onClear={clear} />}
        {mayOperate && !isMatching && (
          <BulkBar runs={rows.filter((row) => selected.has(row.runId))} onClear={clear}>
            {all && (
              <button className="link-button" onClick={() => setMatching(true)}>
                Select all {matching === undefined ? "that match" : `${matching.toLocaleString("en")} matching`}
              </button>
            )}
          </BulkBar>
        )}
        {source.news && (
          <button
            className="button small primary runs-news"
            onClick={() => {
              window.scrollTo(0, 0);
              source.refresh();
            }}
          >
            <Icon name="up" size={12} /> New runs
          </button>
        )}
      </div>
      <div
        className={mayOperate ? "card run-table selectable" : "card run-table"}
        role="table"
        aria-label="Runs"
        aria-rowcount={source.list.cursor === null ? rows.length + 1 : -1}
      >
        <div role="row" className="run-row run-table-head" aria-rowindex={1}>
          {mayOperate && (
            <span role="columnheader" className="run-check">
              <input
                type="checkbox"
                aria-label="Select all loaded runs"
                checked={all}
                onChange={() => {
                  setMatching(false);
                  setSelected(all ? new Set() : new Set(rows.map((row) => row.runId)));
                }}
              />
            </span>
          )}
          <span role="columnheader">Status</span>
          <span role="columnheader">Workflow</span>
          <span role="columnheader">Run</span>
          <span role="columnheader">Why, and its input</span>
          <span role="columnheader">Started</span>
          <span role="columnheader" className="run-took">
            Took
          </span>
        </div>
        <div ref={body} role="rowgroup" className="run-table-body" style={{ height: windowed.getTotalSize() }}>
          {items.map((item) => (
            <Row
              key={item.key}
              run={rows[item.index]!}
              index={item.index}
              start={item.start - offset}
              selected={mayOperate ? selected.has(rows[item.index]!.runId) : undefined}
              onToggle={toggle}
              onFocus={() => (active.current = item.index)}
            />
          ))}
        </div>
      </div>
      <p className="muted runs-foot" role="status">
        {source.error ? (
          <>
            The rest could not be read.{" "}
            <button className="link-button" onClick={source.loadMore}>
              Try again
            </button>
          </>
        ) : source.list.cursor === null ? (
          `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "run" : "runs"}`
        ) : (
          "Loading more…"
        )}
      </p>
    </>
  );
}

/** Keeps the list for who comes back, and scrolls there for who did. */
function useKept(name: string, list: RunRows, scroll: number | undefined): void {
  const newest = useRef({ list, scroll: scroll ?? 0 });
  useEffect(() => {
    newest.current.list = list;
  });
  useLayoutEffect(() => {
    if (scroll !== undefined) window.scrollTo(0, scroll);
    const state = newest.current;
    const scrolled = () => (state.scroll = window.scrollY);
    window.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      window.removeEventListener("scroll", scrolled);
      keepList(name, state.list, state.scroll);
    };
  }, [name, scroll]);
}

function hrefOf(run: RunSummary): string {
  return runPath(run.runId);
}

/** Why it failed, or is suspended. */
function reasonOf(run: RunSummary): string {
  if (run.status === "suspended") return lastLine(run.suspension?.message ?? "");
  if (!run.error) return "";
  const said = lastLine(run.error.message);
  return run.failedStep ? `${run.failedStep}: ${said}` : said;
}

interface RowProps {
  run: RunSummary;
  index: number;
  start: number;
  selected: boolean | undefined;
  onToggle: (runId: string) => void;
  onFocus: () => void;
}

function Row({ run, index, start, selected, onToggle, onFocus }: RowProps) {
  const reason = reasonOf(run);
  const what = run.inputSummary ?? "";
  return (
    <div
      role="row"
      className="run-row"
      aria-rowindex={index + 2}
      aria-selected={selected}
      data-index={index}
      style={{ transform: `translateY(${start}px)` }}
      onFocus={onFocus}
    >
      {selected !== undefined && (
        <span role="cell" className="run-check">
          <input
            type="checkbox"
            aria-label={`Select ${run.runId}`}
            checked={selected}
            onChange={() => onToggle(run.runId)}
          />
        </span>
      )}
      <span role="cell" className="run-status">
        <StatusBadge status={run.status} />
      </span>
      <span role="cell" className="run-workflow">
        {run.workflow}
      </span>
      <span role="cell" className="run-name">
        <Link href={hrefOf(run)}>{run.runId}</Link>
      </span>
      <span role="cell" className="run-what" title={reason || what}>
        {reason && <span className={`run-reason status-${run.status}`}>{reason}</span>}
        {what && <span className="run-input muted">{what}</span>}
      </span>
      <span role="cell" className="run-when">
        <When at={run.startedAt ?? run.createdAt} />
      </span>
      <span role="cell" className="run-took">
        <Duration from={run.startedAt} to={run.completedAt} />
      </span>
    </div>
  );
}

function NoRuns({ filter, onClear }: { filter: RunFilter; onClear: () => void }) {
  if (isFiltered(filter))
    return (
      <Empty icon="search" title="No run matches">
        <p>There may be others with another status, workflow or time.</p>
        <button className="button" onClick={onClear}>
          Show all runs
        </button>
      </Empty>
    );
  return (
    <Empty icon="play" title="Nothing has run yet">
      <p>
        <Link href="/workflows">Choose a workflow</Link> and launch it, or start one from a terminal. It will appear
        here at once.
      </p>
      <pre>
        <code>{"rival run NAME --input '{…}'"}</code>
      </pre>
    </Empty>
  );
}
