import { useCallback, useEffect, useRef } from "react";

/** The first wish of a burst is granted soon after it (more often come together), the next not before `ms` have passed. */
const GATHER_MS = 100;

/** Calls the newest `action` once for however many calls of it, at most once in `ms`. */
export function useThrottled(action: () => void, ms: number): () => void {
  const newest = useRef(action);
  const timer = useRef<number | undefined>(undefined);
  const last = useRef(0);
  useEffect(() => {
    newest.current = action;
  });
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return useCallback(() => {
    timer.current ??= window.setTimeout(
      () => {
        timer.current = undefined;
        last.current = Date.now();
        newest.current();
      },
      Math.max(GATHER_MS, last.current + ms - Date.now()),
    );
  }, [ms]);
}
