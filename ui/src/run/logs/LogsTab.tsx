import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
  type CSSProperties,
  type RefObject,
} from "react";
import { useSearchParams } from "wouter";
import { api } from "../../api/client";
import { LOG_LEVELS, type FeedEvent, type LogLevel, type LogLine } from "../../api/types";
import { Empty } from "../../parts/Empty";
import { Failure } from "../../parts/Failure";
import { Loading } from "../../parts/Loading";
import { SearchField } from "../../parts/SearchField";
import { download } from "../../parts/download";
import { lastLine } from "../../parts/lastLine";
import { formatDay } from "../../parts/time";
import { isTerminal, useRunEvents, useRunLive } from "../live";
import { attemptsQuery } from "../nodes/queries";
import { useRunPlan, type RunPlan } from "../nodes/shared";
import { isIterated, wayTo, type Box } from "../plan";
import { Line, lineText } from "./Line";
import { LogReader } from "./LogReader";
import { rowsOf, type Mark } from "./rows";
import { chosenIn, logQueryOf, withIteration } from "./where";
import "./logs.css";

const PAGE = 500;
const ROW_PX = 24;
/** How near to the end counts as being there. */
const NEAR_PX = 40;
/** Room below the box, and the least that it is high. */
const EDGE_PX = 16;
const EDGE_LEAST_PX = 240;
const KEYS_UP = ["ArrowUp", "PageUp", "Home"];

interface Filter {
  /** of which node: where.ts */
  in: string;
  level: LogLevel;
  q: string;
}

export function LogsTab() {
  const { runId, run } = useRunLive();
  const { loading } = useRunPlan(); // which says what an address with open iterations means
  const [params, setParams] = useSearchParams();
  const filter: Filter = {
    in: params.get("in") ?? "",
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
        <WhereField where={filter.in} onChange={(where) => set("in", where)} />
        <label className="inline-field">
          Level
          <select
            value={filter.level}
            onChange={(event) => set("level", event.target.value === "info" ? "" : event.target.value)}
          >
            <option value="debug">debug and above</option>
            <option value="info">info and above</option>
            <option value="warn">warn and above</option>
            <option value="error">error only</option>
          </select>
        </label>
      </div>
      {loading ? (
        <Loading what="the plan" />
      ) : (
        <LogView
          key={`${filter.in}\n${filter.level}\n${filter.q}`}
          runId={runId}
          filter={filter}
          ended={isTerminal(run.status)}
        />
      )}
    </div>
  );
}

/** A node of the plan, and of each loop on the way to it an iteration, or any. */
function WhereField({ where, onChange }: { where: string; onChange: (where: string) => void }) {
  const { plan } = useRunPlan();
  const way = where === "" ? [] : wayTo(plan.boxes, where);
  const options: { box: Box; depth: number }[] = [];
  const list = (boxes: Box[], depth: number) => {
    for (const box of boxes) {
      options.push({ box, depth });
      for (const lane of box.lanes) list(lane.boxes, depth + 1);
    }
  };
  list(plan.top, 0);
  return (
    <>
      <label className="inline-field">
        Node
        <select value={way.at(-1)?.box.key ?? ""} onChange={(event) => onChange(event.target.value)}>
          <option value="">all</option>
          {options.map(({ box, depth }) => (
            <option key={box.key} value={box.key}>
              {"\u00a0\u00a0".repeat(depth) + box.alias}
            </option>
          ))}
        </select>
      </label>
      {way.map((passed, place) =>
        isIterated(passed.box) ? (
          <label key={passed.box.key} className="inline-field">
            {passed.box.alias} #
            <input
              type="number"
              min={1}
              placeholder="all"
              inputMode="numeric"
              disabled={way.slice(0, place).some((each) => isIterated(each.box) && chosenIn(each) === undefined)}
              value={chosenIn(passed) === undefined ? "" : chosenIn(passed)! + 1}
              onChange={(event) => {
                const number = parseInt(event.target.value, 10);
                onChange(withIteration(way, place, number >= 1 ? number - 1 : undefined));
              }}
            />
          </label>
        ) : null,
      )}
    </>
  );
}

function LogView({ runId, filter, ended }: { runId: string; filter: Filter; ended: boolean }) {
  const [reader] = useState(
    () =>
      new LogReader(
        (after) =>
          api.logs(runId, {
            level: filter.level,
            limit: PAGE,
            ...logQueryOf(plan.boxes, filter.in),
            ...(filter.q && { q: filter.q }),
            after,
          }),
        PAGE,
      ),
  );
  useSyncExternalStore(reader.subscribe, reader.getVersion);
  const { lines, loaded, more, error } = reader;
  const [follow, setFollow] = useState(!ended);
  const box = useRef<HTMLDivElement>(null);
  const { run } = useRunLive();
  const { plan } = useRunPlan();
  const isWhole = filter.in === "" && filter.q === "";
  const known = lines.length;
  const all = useMemo(
    () => rowsOf(reader.lines.slice(0, known), isWhole ? run : { createdAt: 0, status: "running" }, !more, formatDay),
    [reader, known, isWhole, run, more],
  );
  const failed = useFailedAttempt();
  const loops = useMemo(() => loopsIn(plan.top), [plan]);
  const height = useHeightToEdge(box, loaded && lines.length > 0);

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
    count: all.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
    getItemKey: (index) => all[index]?.key ?? index,
  });

  useEffect(() => {
    if (follow && all.length > 0) rows.scrollToIndex(all.length - 1, { align: "end" });
  }, [follow, all.length, rows]);

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
        <Download reader={reader} name={`${runId}.log`} />
      </div>
      <div
        ref={box}
        className={loops > 0 ? "log-box log-iterated" : "log-box"}
        style={{ maxHeight: height, "--loops": loops } as CSSProperties}
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
            <div
              key={item.key}
              ref={rows.measureElement}
              data-index={item.index}
              className="log-row"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Row row={all[item.index]!} plan={plan} failed={failed} loops={loops} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** All of it as text, also what has not been read yet. */
function Download({ reader, name }: { reader: LogReader; name: string }) {
  const [busy, setBusy] = useState(false);
  async function save() {
    setBusy(true);
    await reader.read(true);
    setBusy(false);
    download(name, reader.lines.map(lineText).join(""));
  }
  return (
    <button className="button small" disabled={busy} onClick={() => void save()}>
      {busy ? "Reading…" : "Download"}
    </button>
  );
}

/** How many loops are inside each other, where most are. */
function loopsIn(boxes: Box[]): number {
  return Math.max(
    0,
    ...boxes.map((box) => (isIterated(box) ? 1 : 0) + Math.max(0, ...box.lanes.map((lane) => loopsIn(lane.boxes)))),
  );
}

/** The attempt that made the run fail, or suspended it: what it said last is why. */
function useFailedAttempt(): { path: string; attempt: number } | null {
  const { runId, run } = useRunLive();
  const path = run.failedPath ?? run.failedStep ?? run.suspensions?.[0]?.path ?? "";
  const { data } = useQuery({ ...attemptsQuery(runId, path), enabled: path !== "" });
  return data?.attempt === undefined ? null : { path, attempt: data.attempt };
}

/** How high the box may be to end where the window does, so that its last line is seen. */
function useHeightToEdge(box: RefObject<HTMLDivElement | null>, shown: boolean): number | undefined {
  const [height, setHeight] = useState<number>();
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const fit = () => {
      const top = element.getBoundingClientRect().top + window.scrollY;
      setHeight(Math.max(EDGE_LEAST_PX, window.innerHeight - top - EDGE_PX));
    };
    const watcher = new ResizeObserver(fit);
    watcher.observe(document.body); // which calls it at once, too
    window.addEventListener("resize", fit);
    return () => {
      watcher.disconnect();
      window.removeEventListener("resize", fit);
    };
  }, [box, shown]);
  return height;
}

function Row({
  row,
  plan,
  failed,
  loops,
}: {
  row: Mark | { line: LogLine };
  plan: RunPlan;
  failed: { path: string; attempt: number } | null;
  loops: number;
}) {
  if ("mark" in row)
    return (
      <div className={`log-mark mark-${row.mark}`}>
        <span>{row.text}</span>
        {row.why && <span className="log-mark-why">{lastLine(row.why)}</span>}
      </div>
    );
  const { line } = row;
  const isFatal = failed !== null && line.path === failed.path && line.attempt === failed.attempt;
  return <Line line={line} plan={plan} level={isFatal ? "error" : line.level} loops={loops} />;
}

function NoLines({ filter, ended }: { filter: Filter; ended: boolean }) {
  if (filter.in || filter.q || filter.level !== "info")
    return (
      <Empty icon="search" title="No line matches">
        <p>Try another text, node or level.</p>
      </Empty>
    );
  return (
    <Empty icon="file" title={ended ? "Nothing was logged" : "Nothing logged yet"}>
      <p>
        What a command writes to stderr, and what a function logs, is here line by line. Lines of level debug are hidden
        unless you ask for them.
      </p>
    </Empty>
  );
}
