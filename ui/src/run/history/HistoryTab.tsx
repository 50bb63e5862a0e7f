/* HistoryTab.tsx: what happened in the run, event by event, as the server has kept it; to be read, and saved. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { writeJson } from "../../api/json";
import type { Json } from "../../api/types";
import { runPath } from "../../app/paths";
import { download } from "../../parts/download";
import { Failure } from "../../parts/Failure";
import { Loading } from "../../parts/Loading";
import { formatAbsolute, formatClock } from "../../parts/time";
import { useNarrow } from "../../parts/useNarrow";
import { useRunLive } from "../live";
import { useRunPlan } from "../nodes/shared";
import { wayText } from "../plan";
import "./history.css";
import { sayingOfEvent } from "./events";
import { useHistory } from "./useHistory";

const ROW_PX = 30;
/** On a phone: two lines. */
const NARROW_ROW_PX = 50;
export function HistoryTab() {
  const { runId } = useRunLive();
  const { events, isCut, isEmpty, error, retry } = useHistory(runId);
  const { plan } = useRunPlan();
  const box = useRef<HTMLDivElement>(null);
  const rowPx = useNarrow() ? NARROW_ROW_PX : ROW_PX;
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowPx,
    overscan: 20,
  });
  useEffect(() => rows.measure(), [rows, rowPx]);
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
                style={{ height: rowPx, transform: `translateY(${item.start}px)` }}
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
