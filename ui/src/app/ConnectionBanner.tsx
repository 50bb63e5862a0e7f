import { Icon } from "../parts/Icon";
import { retryAll, useConnection } from "./connection";

/** Seen while the server is away. What is on the page stays; it catches up by itself. */
export function ConnectionBanner() {
  const lost = useConnection() === "lost";
  return (
    <div role="status" aria-live="polite">
      {lost && (
        <div className="banner">
          <Icon name="offline" />
          <span>
            <strong>Connection lost.</strong> What you see may be out of date; trying again…
          </span>
          <button className="button small" onClick={retryAll}>
            Try now
          </button>
        </div>
      )}
    </div>
  );
}
