/* HistoryTab.tsx: what happened in the run, event by event, as the server has kept it; to be read, and saved. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { api } from "../../api/client";
import { writeJson } from "../../api/json";
import type { FeedEvent, Json } from "../../api/types";
import { runPath } from "../../app/paths";
import { download } from "../../parts/download";
import { Failure } from "../../parts/Failure";
import { Loading } from "../../parts/Loading";
import { formatAbsolute, formatClock } from "../../parts/time";
import { useThrottled } from "../../parts/useThrottled";
import { useRunEvents, useRunLive } from "../live";
import { useRunPlan } from "../nodes/shared";
import { wayText } from "../plan";
import "./history.css";
import { sayingOfEvent } from "./events";

const ROW_PX = 30;
/** So many are read at most: beyond, `rival export` has them. */
const MOST = 200_000;
/** Of one answer. */
const PAGE = 5000;
/** However much happens, it is read at most this often. */
const READ_MS = 300;

interface History {
  events: readonly FeedEvent[];
  isCut: boolean;
  /** nothing was read yet */
  isEmpty: boolean;
  error: unknown;
  retry: () => void;
}

/** All events from the first on, page by page, and those to come: the run's stream says when there are more. */
function useHistory(runId: string): History {
  const [state, setState] = useState<Pick<History, "events" | "isEmpty" | "error">>({
    events: [],
    isEmpty: true,
    error: undefined,
  });
  const reading = useRef<{ all: FeedEvent[]; next?: string; busy: boolean; again: boolean; stop: AbortController }>(
    undefined,
  );

  const read = useCallback(async () => {
    const at = reading.current;
    if (!at) return;
    at.again = true;
    if (at.busy) return;
    at.busy = true;
    try {
      while (at.again && at.all.length < MOST) {
        at.again = false;
        const page = await api.history(runId, { after: at.next, logs: 1, limit: PAGE }, at.stop.signal);
        at.all.push(...page.events.slice(0, MOST - at.all.length));
        at.next = page.next ?? at.next;
        at.again ||= page.more;
        setState({ events: at.all.slice(), isEmpty: false, error: undefined });
      }
    } catch (error) {
      if (!at.stop.signal.aborted) setState((before) => ({ ...before, error }));
    } finally {
      at.busy = false;
    }
  }, [runId]);

  useEffect(() => {
    const stop = new AbortController();
    reading.current = { all: [], busy: false, again: false, stop };
    void read();
    return () => stop.abort();
  }, [read]);
  const more = useThrottled(() => void read(), READ_MS);
  useRunEvents({ onEvents: more, onOpen: more });
  return { ...state, isCut: state.events.length >= MOST, retry: () => void read() };
}

export function HistoryTab() {
  const { runId } = useRunLive();
  const { events, isCut, isEmpty, error, retry } = useHistory(runId);
  const { plan } = useRunPlan();
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  if (error) return <Failure error={error} retry={retry} />;
  if (isEmpty) return <Loading what="the events" />;
  return (
    <div className="card history">
      <div className="log-bar">
        <span className="muted" role="status">
          {events.length.toLocaleString("en")} {events.length === 1 ? "event" : "events"}
          {isCut && ", and more: rival export has all"}
        </span>
        <button
          className="button small"
          onClick={() =>
            download(
              `${runId}.events.jsonl`,
              events.map((event) => `${writeJson(event as unknown as Json)}\n`).join(""),
              "application/jsonl",
            )
          }
        >
          Download
        </button>
      </div>
      <div ref={box} className="history-box" tabIndex={0} role="group" aria-label="Events of the run">
        <ol className="history-rows" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const event = events[item.index]!;
            return (
              <li
                key={item.key}
                className={`history-row kind-${event.kind.split(".")[1] ?? event.kind}`}
                style={{ transform: `translateY(${item.start}px)` }}
                aria-posinset={item.index + 1}
                aria-setsize={events.length}
              >
                <time className="muted" dateTime={new Date(event.at).toISOString()} title={formatAbsolute(event.at)}>
                  {formatClock(event.at)}
                </time>
                <span className="history-kind">{event.kind}</span>
                <span className="history-where">
                  {event.path && (
                    <Link href={runPath(runId, `/nodes?${new URLSearchParams({ node: event.path }).toString()}`)}>
                      {wayText(plan.boxes, event.path)}
                    </Link>
                  )}
                </span>
                <span className="history-saying">{sayingOfEvent(event)}</span>
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}
