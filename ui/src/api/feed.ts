/* feed.ts: follow the server's feed, over lost connections.
 *
 * Written on fetch rather than EventSource, which hides the status: 401 (log in), 404 (no such run)
 * and 410 (the position is older than what the server has kept) each need something else. It
 *  - goes on behind the last event it saw (Last-Event-ID), so nothing is missed and nothing seen twice;
 *  - calls `onOpen` whenever a stream begins: whoever holds documents reads them anew then;
 *  - tries again by itself, sooner when the browser says it is online or the page is looked at again;
 *  - lets go of its connection while the page is hidden: a browser has six to a server, over all tabs. */
import { onlineManager } from "@tanstack/react-query";
import { API, endSession } from "./client";
import { readJson } from "./json";
import { sseParser } from "./sse";
import type { FeedEvent } from "./types";

export type FeedState = "connecting" | "live" | "lost" | "ended";

export interface FeedOptions {
  /** Of this run; else of all. */
  runId?: string;
  /** Where to begin; else with what happens next. */
  from?: "oldest";
  /** With the lines of logs. */
  logs?: boolean;
  /** Kinds whose events are wanted, by their beginning ("run."): others are not even parsed. */
  kinds?: string;
  onEvents: (events: FeedEvent[]) => void;
  onOpen?: () => void;
  onState?: (state: FeedState) => void;
}

export interface Feed {
  retryNow: () => void;
  close: () => void;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5000;
/** The server sends a comment every 15 s: silence for longer than this means that it is gone. */
const SILENCE_MS = 40_000;
/** How long a hidden page keeps its stream: a glance at another tab is not worth a new one. */
const HIDDEN_MS = 20_000;

export function openFeed(options: FeedOptions): Feed {
  const path = options.runId === undefined ? "/events" : `/runs/${encodeURIComponent(options.runId)}/events`;
  const url = `${API}${path}?from=${options.from ?? "now"}${options.logs ? "" : "&logs=0"}`;
  let lastId = "";
  let failures = 0;
  let closed = false;
  let stream: AbortController | null = null;
  let timer: number | undefined;
  let hiding: number | undefined;

  const say = (state: FeedState) => {
    if (!closed) options.onState?.(state);
  };

  async function read(controller: AbortController): Promise<void> {
    const response = await fetch(url, {
      credentials: "same-origin",
      headers: { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) },
      cache: "no-store",
      signal: controller.signal,
    });
    if (response.status === 410 && lastId) {
      lastId = ""; // what is between is gone: begin anew, and onOpen reads the state
      await response.body?.cancel();
      return read(controller);
    }
    if (!response.ok || !response.body) throw new FeedRefused(response.status);
    failures = 0;
    say("live");
    options.onOpen?.();

    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = sseParser();
    for (;;) {
      const silent = window.setTimeout(() => controller.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => window.clearTimeout(silent));
      if (done || closed) return;
      const events: FeedEvent[] = [];
      for (const event of parse(value)) {
        lastId = event.id || lastId;
        if (!options.kinds || event.event.startsWith(options.kinds))
          events.push(readJson(event.data) as unknown as FeedEvent);
      }
      if (events.length > 0) options.onEvents(events);
    }
  }

  async function connect(): Promise<void> {
    if (closed || stream || document.hidden) return;
    window.clearTimeout(timer);
    const controller = new AbortController();
    stream = controller;
    let status = 0;
    try {
      await read(controller);
    } catch (error) {
      status = error instanceof FeedRefused ? error.status : 0;
    }
    if (stream === controller) stream = null;
    if (closed || document.hidden) return;
    if (status === 401 || status === 403 || status === 404) {
      say("ended"); // trying again would not help; whoever shows the page says why
      if (status === 401) endSession();
      return;
    }
    failures++;
    say("lost");
    const wait = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS);
    timer = window.setTimeout(() => void connect(), wait * (0.75 + Math.random() / 2));
  }

  function retryNow(): void {
    window.clearTimeout(timer);
    void connect();
  }
  function visibility(): void {
    window.clearTimeout(hiding);
    if (document.hidden) hiding = window.setTimeout(() => stream?.abort(), HIDDEN_MS);
    else retryNow();
  }
  document.addEventListener("visibilitychange", visibility);
  const offline = onlineManager.subscribe((online) => {
    if (online) retryNow();
  });
  say("connecting");
  void connect();

  return {
    retryNow,
    close() {
      closed = true;
      window.clearTimeout(timer);
      window.clearTimeout(hiding);
      document.removeEventListener("visibilitychange", visibility);
      offline();
      stream?.abort();
    },
  };
}

class FeedRefused extends Error {
  constructor(readonly status: number) {
    super(`the feed was refused with ${status}`);
  }
}
