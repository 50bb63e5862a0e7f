/* useHistory.ts: all events of a run, from the first on, and those to come. */
import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../../api/client";
import type { FeedEvent } from "../../api/types";
import { useThrottled } from "../../parts/useThrottled";
import { useRunEvents } from "../live";

/** So many are read at most: beyond, `rival export` has them. */
const MOST = 200_000;
/** Of one answer. */
const PAGE = 5000;
/** However much happens, it is read at most this often. */
const READ_MS = 300;

export interface History {
  events: readonly FeedEvent[];
  isCut: boolean;
  /** nothing was read yet */
  isEmpty: boolean;
  error: unknown;
  retry: () => void;
}

/** All events from the first on, page by page, and those to come: the run's stream says when there are more. */
export function useHistory(runId: string): History {
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
