/* StateAttachments.tsx: what the attempts of a state left, the last with its content: beside its log, for who has to
 * decide. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { ErrorBlock } from "../../parts/ErrorBlock";
import { JsonView } from "../../parts/JsonView";
import { lastLine } from "../../parts/lastLine";
import { useFresh } from "../../parts/useFresh";
import { useRunEvents, useRunLive } from "../live";
import { count } from "../nodes/names";
import "./attachments.css";
import { AttachmentStatus } from "./AttachmentStatus";
import { attachmentPath, attachmentQuery, attachmentsOfState } from "./queries";

const READ_MS = 500;
/** So many are named before the last. */
const EARLIER = 9;

export function StateAttachments({ path }: { path: string }) {
  const { runId } = useRunLive();
  const all = useQuery(attachmentsOfState(runId, path));
  const read = useFresh(all.isFetching, () => void all.refetch(), READ_MS);
  useRunEvents({
    onEvents: (events) => {
      if (
        events.some((event) => event.kind === "run.resumed" || (event.path === path && event.kind.startsWith("state.")))
      )
        read();
    },
    onOpen: read,
  });
  const attachments = all.data?.attachments ?? [];
  const last = attachments.at(-1);
  const { data } = useQuery({
    ...attachmentQuery(runId, last?.id ?? "", last?.completedAt),
    enabled: last !== undefined,
  });
  if (!last) return null;
  const earlier = attachments.slice(-EARLIER - 1, -1);
  const omitted = attachments.length - 1 - earlier.length;
  return (
    <section aria-label="Attachments" className="attachments-of-state">
      <h3>{attachments.length > 1 ? "Attachments" : "Attachment"}</h3>
      {omitted > 0 && <p className="muted">{count(omitted)} before these</p>}
      <ol>
        {[...earlier, last].map((each) => (
          <li key={each.id}>
            <AttachmentStatus attachment={each} />
            <Link href={attachmentPath(runId, each.id)} title={each.id}>
              attempt {each.attempt + 1}
            </Link>
            {each !== last && <span className="muted attachment-said">{lastLine(each.description)}</span>}
          </li>
        ))}
      </ol>
      {data?.error && <ErrorBlock label="Error" name="Error in the attachment" text={data.error.message} />}
      {data && !data.error && data.result !== undefined && <JsonView value={data.result} label="the result" />}
    </section>
  );
}
