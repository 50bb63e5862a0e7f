import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useSearchParams } from "wouter";
import { api } from "../../api/client";
import { writeJson } from "../../api/json";
import { LOG_LEVELS, type FeedEvent, type LogLevel, type LogLine } from "../../api/types";
import { Empty } from "../../parts/Empty";
import { Failure } from "../../parts/Failure";
import { Loading } from "../../parts/Loading";
import { SearchField } from "../../parts/SearchField";
import { formatAbsolute, formatClock } from "../../parts/time";
import { isTerminal, useRunEvents, useRunLive } from "../live";
import { boxesOf, byKey, isSupervisor } from "../plan";
import { LogReader } from "./LogReader";
import "./logs.css";

const PAGE = 500;
const ROW_PX = 24;
/** How near to the end counts as being there. */
const NEAR_PX = 40;
const KEYS_UP = ["ArrowUp", "PageUp", "Home"];

interface Filter {
  step: string;
  level: LogLevel;
  q: string;
}

export function LogsTab() {
  const { runId, run } = useRunLive();
  const [params, setParams] = useSearchParams();
  const filter: Filter = {
    step: params.get("step") ?? "",
    level: LOG_LEVELS.find((level) => level === params.get("level")) ?? "info",
    q: params.get("q") ?? "",
  };
  const set = (name: keyof Filter, value: string) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );

  return (
    <div className="logs">
      <div className="toolbar">
        <SearchField label="Search in the log" value={filter.q} onChange={(text) => set("q", text)} />
        <label className="inline-field">
          Step
          <input
            value={filter.step}
            onChange={(event) => set("step", event.target.value.trim())}
            placeholder="all"
            spellCheck={false}
            list="log-steps"
          />
        </label>
        <StepNames runId={runId} />
        <label className="inline-field">
          Level
          <select value={filter.level} onChange={(event) => set("level", event.target.value === "info" ? "" : event.target.value)}>
            <option value="debug">debug and above</option>
            <option value="info">info and above</option>
            <option value="warn">warn and above</option>
            <option value="error">error only</option>
          </select>
        </label>
      </div>
      <LogView key={`${filter.step}\n${filter.level}\n${filter.q}`} runId={runId} filter={filter} ended={isTerminal(run.status)} />
    </div>
  );
}

/** The aliases of the plan, at every depth, to choose from. */
function StepNames({ runId }: { runId: string }) {
  const { data } = useQuery({ queryKey: ["plan", runId], queryFn: ({ signal }) => api.runPlan(runId, signal), staleTime: Infinity });
  const names = new Set<string>();
  if (data) for (const box of byKey(boxesOf(data)).values()) if (!isSupervisor(box)) names.add(box.alias);
  return (
    <datalist id="log-steps">
      {[...names].map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}

function LogView({ runId, filter, ended }: { runId: string; filter: Filter; ended: boolean }) {
  const [reader] = useState(
    () => new LogReader((after) => api.logs(runId, { level: filter.level, limit: PAGE, ...(filter.step && { step: filter.step }), ...(filter.q && { q: filter.q }), after }), PAGE),
  );
  useSyncExternalStore(reader.subscribe, reader.getVersion);
  const { lines, loaded, more, error } = reader;
  const [follow, setFollow] = useState(!ended);
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (follow || !reader.loaded) void reader.read(follow);
  }, [reader, follow]);
  /** There are new lines; whoever is in the midst of old ones has not asked for them. */
  function readOn() {
    if (follow || !reader.more) void reader.read(follow);
  }
  useRunEvents({
    onEvents: (events: FeedEvent[]) => {
      if (events.some((event) => event.kind === "log")) readOn();
    },
    onOpen: readOn,
  });

  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
    getItemKey: (index) => lines[index]?.id ?? index,
  });

  useEffect(() => {
    if (follow && lines.length > 0) rows.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines.length, rows]);

  // Whoever moves it away from the end wants to read there. Lines that came in, or were measured, move it, too.
  const byHand = useRef(false);
  function scrolled() {
    const element = box.current;
    if (!element) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
    if (atEnd && more && !follow) void reader.read(false);
    if (!atEnd && byHand.current) setFollow(false);
  }

  if (error && lines.length === 0) return <Failure error={error} retry={() => void reader.read(follow)} />;
  if (!loaded) return <Loading what="the log" />;
  if (lines.length === 0) return <NoLines filter={filter} ended={ended} />;
  return (
    <div className="card log-card">
      <div className="log-bar">
        <span className="muted" role="status">
          {lines.length.toLocaleString("en")} {lines.length === 1 ? "line" : "lines"}
          {more && !follow ? ", more below" : ""}
        </span>
        <label className="check">
          <input
            type="checkbox"
            checked={follow}
            onChange={(event) => {
              byHand.current = false;
              setFollow(event.target.checked);
            }}
          />{" "}
          Follow
        </label>
      </div>
      <div
        ref={box}
        className="log-box"
        onScroll={scrolled}
        onWheel={(event) => event.deltaY < 0 && setFollow(false)}
        onKeyDown={(event) => KEYS_UP.includes(event.key) && setFollow(false)}
        onPointerDown={() => (byHand.current = true)}
        onPointerUp={() => (byHand.current = false)}
        tabIndex={0}
        role="log"
        aria-label="Log of the run"
        aria-live="off"
      >
        <div className="log-space" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => (
            <div key={item.key} ref={rows.measureElement} data-index={item.index} className="log-row" style={{ transform: `translateY(${item.start}px)` }}>
              <Line line={lines[item.index]!} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

function Line({ line }: { line: LogLine }) {
  return (
    <div className={`log-line level-${line.level}`}>
      <time className="muted" dateTime={new Date(line.timestamp).toISOString()} title={formatAbsolute(line.timestamp)}>
        {formatClock(line.timestamp)}
      </time>
      <span className="log-level">{line.level}</span>
      <span className="log-step" title={line.path + (line.attempt > 1 ? `, attempt ${line.attempt}` : "")}>
        {line.stepName}
        {line.attempt > 1 && <span className="muted"> #{line.attempt}</span>}
      </span>
      <span className="log-message">
        {line.message}
        {line.metadata !== undefined && line.metadata !== null && <code className="log-meta">{writeJson(line.metadata)}</code>}
      </span>
    </div>
  );
}

function NoLines({ filter, ended }: { filter: Filter; ended: boolean }) {
  if (filter.step || filter.q || filter.level !== "info")
    return (
      <Empty icon="search" title="No line matches">
        <p>Try another text, step or level.</p>
      </Empty>
    );
  return (
    <Empty icon="file" title={ended ? "Nothing was logged" : "Nothing logged yet"}>
      <p>
        What a command writes to stderr, and what a function logs, is here line by
        line. Lines of level debug are hidden unless you ask for them.
      </p>
    </Empty>
  );
}
