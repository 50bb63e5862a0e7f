/* sse.ts: the text of a server-sent event stream, taken apart as it comes. */

export interface SseEvent {
  id: string;
  event: string;
  data: string;
}

/** Feed it pieces of text as they arrive; it answers with the events that are whole by now. */
export function sseParser(): (piece: string) => SseEvent[] {
  let rest = "";
  let id = "";
  let event = "";
  let data: string[] = [];
  return (piece) => {
    const events: SseEvent[] = [];
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) events.push({ id, event: event || "message", data: data.join("\n") });
        event = "";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue; // a comment: the heartbeat
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
      if (field === "data") data.push(value);
      else if (field === "event") event = value;
      else if (field === "id") id = value;
    }
    return events;
  };
}
