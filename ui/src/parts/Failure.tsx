import { ApiError } from "../api/client";
import { Icon } from "./Icon";

/** What went wrong, in the server's words, and the way on. */
export function Failure({ error, retry, page }: { error: unknown; retry?: () => void; page?: boolean }) {
  const known = error instanceof ApiError ? error : null;
  const title = known ? known.problem.title : "Something went wrong in this page";
  const detail = known ? known.problem.detail : error instanceof Error ? error.message : String(error);
  const Box = page ? "main" : "div";
  return (
    <Box className={page ? "failure failure-page" : "failure"} role={page ? undefined : "alert"}>
      <Icon name={known?.unreachable ? "offline" : "question"} size={20} />
      <div>
        <strong>{title}</strong>
        {detail && detail !== title && <p>{detail}</p>}
      </div>
      {retry && (
        <button className="button small" onClick={retry}>
          Try again
        </button>
      )}
    </Box>
  );
}
