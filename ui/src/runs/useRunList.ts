import { useCallback, useEffect, useReducer, useRef } from "react";
import { api, type RunQuery } from "../api/client";
import type { FeedEvent, RunPageOf } from "../api/types";
import { useFeed } from "../api/useFeed";
import { NO_ROWS, withEvents, withHead, withNext, type RunRows } from "./runList";

const PAGE = 100;
/** Who has read far will read on: pages grow with the list, so that reading all of it stays linear. */
const PAGE_MOST = 1000;
/** However many runs begin, the first page is read at most this often. */
const FRESHEN_MS = 1000;

interface State {
  list: RunRows;
  loading: boolean;
  error: unknown;
  /** Runs have begun that are not in the list, because the reader is further down. */
  news: boolean;
}

type Action =
  | { type: "head"; page: RunPageOf }
  | { type: "next"; page: RunPageOf }
  | { type: "events"; list: RunRows }
  | { type: "error"; error: unknown }
  | { type: "news" };

function reduce(state: State, action: Action): State {
  switch (action.type) {
    case "head":
      return { list: withHead(state.list, action.page), loading: false, error: null, news: false };
    case "next":
      return { ...state, list: withNext(state.list, action.page), error: null };
    case "events":
      return { ...state, list: action.list };
    case "error":
      return { ...state, loading: false, error: action.error };
    case "news":
      return state.news ? state : { ...state, news: true };
  }
}

export interface RunListSource extends State {
  loadMore: () => void;
  refresh: () => void;
}

/** The runs that match, newest first, live. `atTop`: may new ones come in, or would they push away what
 * is being read? `before`: the list as it was left. Give it a key made of the filter where it is used: another filter is another list. */
export function useRunList(filter: RunQuery, atTop: () => boolean, before?: RunRows): RunListSource {
  const [state, dispatch] = useReducer(reduce, {
    list: before ?? NO_ROWS,
    loading: before === undefined,
    error: null,
    news: false,
  });
  const newest = useRef({ filter, atTop, list: state.list });
  useEffect(() => {
    newest.current = { filter, atTop, list: state.list };
  });
  const asking = useRef<AbortController | null>(null);
  const paging = useRef(false);
  const timer = useRef<number | undefined>(undefined);
  const lastHead = useRef(0);

  const readHead = useCallback(async () => {
    asking.current?.abort();
    const asked = new AbortController();
    asking.current = asked;
    lastHead.current = Date.now();
    try {
      const page = await api.runs({ ...newest.current.filter, limit: PAGE }, asked.signal);
      if (!asked.signal.aborted) dispatch({ type: "head", page });
    } catch (error) {
      if (!asked.signal.aborted) dispatch({ type: "error", error });
    }
  }, []);

  const refresh = useCallback(() => {
    window.clearTimeout(timer.current);
    timer.current = undefined;
    void readHead();
  }, [readHead]);

  /** Soon, and not too often. */
  const freshen = useCallback(() => {
    timer.current ??= window.setTimeout(refresh, Math.max(50, lastHead.current + FRESHEN_MS - Date.now()));
  }, [refresh]);

  const loadMore = useCallback(async () => {
    const { cursor, rows } = newest.current.list;
    if (paging.current || cursor === null) return;
    paging.current = true;
    try {
      const limit = Math.min(PAGE_MOST, Math.max(PAGE, rows.length));
      dispatch({ type: "next", page: await api.runs({ ...newest.current.filter, limit, cursor }) });
    } catch (error) {
      dispatch({ type: "error", error });
    } finally {
      paging.current = false;
    }
  }, []);

  useEffect(() => {
    void readHead();
    return () => {
      asking.current?.abort();
      window.clearTimeout(timer.current);
    };
  }, [readHead]);

  useFeed({
    kinds: "run.",
    onEvents(events: FeedEvent[]) {
      const { list, news } = withEvents(newest.current.list, events);
      if (list !== newest.current.list) {
        newest.current.list = list;
        dispatch({ type: "events", list });
      }
      if (!news) return;
      if (newest.current.atTop()) freshen();
      else dispatch({ type: "news" });
    },
    onOpen: () => {
      if (newest.current.atTop()) freshen();
    },
  });

  return { ...state, loadMore: () => void loadMore(), refresh };
}
