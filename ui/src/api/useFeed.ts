import { useEffect, useRef } from "react";
import { report } from "../app/connection";
import { openFeed, type FeedOptions } from "./feed";

/** Follow the feed while the component is there. The newest handlers are used; a new run or another
 * choice of events opens a new stream. */
export function useFeed(options: FeedOptions): void {
  const newest = useRef(options);
  useEffect(() => {
    newest.current = options;
  });
  const { runId, logs, kinds } = options;
  useEffect(() => {
    const feedKey = {};
    const feed = openFeed({
      runId,
      logs,
      kinds,
      onEvents: (events) => newest.current.onEvents(events),
      onOpen: () => newest.current.onOpen?.(),
      onState: (state) => {
        report(feedKey, state, () => feed.retryNow());
        newest.current.onState?.(state);
      },
    });
    return () => {
      report(feedKey, null);
      feed.close();
    };
  }, [runId, logs, kinds]);
}
