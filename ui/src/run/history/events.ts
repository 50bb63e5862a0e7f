/* events.ts: events, in words. */
import { writeJson } from "../../api/json";
import type { FeedEvent, Json } from "../../api/types";
import { lastLine } from "../../parts/lastLine";
import { formatAbsolute } from "../../parts/time";

/** What everybody knows of each event, and what its own column tells. */
const TOLD = [
  "seq",
  "index",
  "kind",
  "runId",
  "workflow",
  "at",
  "path",
  "attempt",
  "error",
  "dueAt",
  "reason",
  "version",
  "by",
];
const VALUE_MOST = 160;

/** "attempt 2 · in 3 s · why": what there is beyond its kind and place. */
export function sayingOfEvent(event: FeedEvent): string {
  const words: string[] = event.by ? [`by ${event.by}`] : [];
  if (event.attempt !== undefined && event.attempt > 1) words.push(`attempt ${event.attempt}`);
  if (event.error) words.push(lastLine(event.error.message));
  if (event.reason) words.push(lastLine(event.reason.message));
  if (event.dueAt !== undefined) words.push(`due ${formatAbsolute(event.dueAt)}`);
  for (const [name, value] of Object.entries(event)) {
    if (TOLD.includes(name) || value === null || value === undefined) continue;
    const text = typeof value === "string" ? value : writeJson(value as Json);
    words.push(`${name} ${text.length > VALUE_MOST ? `${text.slice(0, VALUE_MOST)}…` : text}`);
  }
  return words.join(" · ");
}
