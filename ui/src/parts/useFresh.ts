import { useEffect, useRef } from "react";
import { useThrottled } from "./useThrottled";

/** Read something again, at most once in `ms`. A wish that comes while it is being read is granted after
 * that: the answer that is on its way may be older than the reason for the wish. */
export function useFresh(reading: boolean, read: () => void, ms: number): () => void {
  const again = useRef(false);
  const soon = useThrottled(() => {
    if (reading) again.current = true;
    else read();
  }, ms);
  useEffect(() => {
    if (reading || !again.current) return;
    again.current = false;
    soon();
  }, [reading, soon]);
  return soon;
}
