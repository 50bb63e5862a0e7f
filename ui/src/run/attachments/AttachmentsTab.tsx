/* AttachmentsTab.tsx: what the attempts of the run's states left: a list, and one of them with its content. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { api } from "../../api/client";
import { ATTACHMENT_STATUSES, type Attachment } from "../../api/types";
import { runPath } from "../../app/paths";
import { CopyButton } from "../../parts/CopyButton";
import { Empty } from "../../parts/Empty";
import { ErrorBlock } from "../../parts/ErrorBlock";
import { Failure } from "../../parts/Failure";
import { Icon } from "../../parts/Icon";
import { JsonView } from "../../parts/JsonView";
import { Loading } from "../../parts/Loading";
import { formatAbsolute, formatClock } from "../../parts/time";
import { Duration } from "../../parts/Time";
import { useFresh } from "../../parts/useFresh";
import { useRunEvents, useRunLive } from "../live";
import { count } from "../nodes/names";
import { AttachmentStatus } from "./AttachmentStatus";
import { attachmentQuery } from "./queries";
import "./attachments.css";

/** In one list; more are a page further. */
const PAGE = 100;
/** However much happens, they are read at most this often. */
const READ_MS = 500;

export function AttachmentsTab() {
  const { runId } = useRunLive();
  const [params, setParams] = useSearchParams();
  const status = params.get("status") ?? "";
  const open = params.get("attachment");
  const [page, setPage] = useState(0);
  const set = (name: string, value: string | null) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  const query = useQuery({
    queryKey: ["attachments", runId, "", status, page],
    queryFn: ({ signal }) =>
      api.attachments(runId, { status: status || undefined, offset: page * PAGE, limit: PAGE }, signal),
    placeholderData: (before) => before,
  });
  const read = useFresh(query.isFetching, () => void query.refetch(), READ_MS);
  useRunEvents({
    onEvents: (events) => {
      if (events.some((event) => event.kind.startsWith("state.") || event.kind.startsWith("run."))) read();
    },
    onOpen: read,
  });
  if (!query.data)
    return query.error ? (
      <Failure error={query.error} retry={() => void query.refetch()} />
    ) : (
      <Loading what="the attachments" />
    );
  const { attachments, total } = query.data;
  return (
    <div className={open ? "attachments-split with-card" : "attachments-split"}>
      <div className="card attachments">
        <div className="attachments-bar">
          <label>
            Status{" "}
            <select
              value={status}
              onChange={(event) => {
                setPage(0);
                set("status", event.target.value);
              }}
            >
              <option value="">all</option>
              {ATTACHMENT_STATUSES.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <span className="muted" role="status">
            {count(total)} {total === 1 ? "attachment" : "attachments"}
          </span>
          {total > PAGE && (
            <span className="actions">
              <button className="button small" disabled={page === 0} onClick={() => setPage(page - 1)}>
                Earlier
              </button>
              <button className="button small" disabled={(page + 1) * PAGE >= total} onClick={() => setPage(page + 1)}>
                Later
              </button>
            </span>
          )}
        </div>
        {attachments.length === 0 ? (
          <Empty icon="list" title={status ? `None is ${status}` : "No attachments yet"} heading="h3">
            <p>Each attempt of each state leaves one.</p>
          </Empty>
        ) : (
          <Table attachments={attachments} open={open} onOpen={(id) => set("attachment", id)} />
        )}
      </div>
      {open && <AttachmentCard key={open} id={open} onClose={() => set("attachment", null)} />}
    </div>
  );
}

/* On a phone its rows are boxes of two lines, which would take their roles from them: so these are written out. */
function Table({
  attachments,
  open,
  onOpen,
}: {
  attachments: Attachment[];
  open: string | null;
  onOpen: (id: string) => void;
}) {
  return (
    <div className="attachments-box" tabIndex={0} role="group" aria-label="List of attachments">
      <table className="attachments-table" role="table">
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader">
              State
            </th>
            <th scope="col" role="columnheader">
              Attempt
            </th>
            <th scope="col" role="columnheader">
              Status
            </th>
            <th scope="col" role="columnheader">
              Description
            </th>
            <th scope="col" role="columnheader">
              Began
            </th>
            <th scope="col" role="columnheader">
              Took
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {attachments.map((each) => (
            <tr
              key={each.id}
              role="row"
              className={`${each.superseded ? "superseded" : ""}${each.id === open ? " open" : ""}`}
            >
              <td role="cell">
                <button className="attachment-open" aria-expanded={each.id === open} onClick={() => onOpen(each.id)}>
                  {each.stage} › {each.state}
                </button>
              </td>
              <td role="cell" className="tabular">
                <span className="attachment-attempt">attempt </span>
                {each.attempt + 1}
              </td>
              <td role="cell">
                <AttachmentStatus attachment={each} />
              </td>
              <td role="cell" className="attachment-description">
                {each.description}
              </td>
              <td role="cell" className="muted tabular" title={formatAbsolute(each.startedAt)}>
                {formatClock(each.startedAt)}
              </td>
              <td role="cell" className="tabular">
                <Duration from={each.startedAt} to={each.completedAt ?? undefined} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** One, with its content. */
function AttachmentCard({ id, onClose }: { id: string; onClose: () => void }) {
  const { runId } = useRunLive();
  const { data, error, refetch } = useQuery(attachmentQuery(runId, id));
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) onClose();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  });
  useRunEvents({
    onEvents: (events) => {
      if (data && events.some((event) => event.path === data.path && event.kind.startsWith("state."))) void refetch();
    },
  });
  return (
    <aside className="card attachment-card" aria-label={`Attachment ${id}`}>
      <header>
        <h2 className="mono attachment-id">
          {id} <CopyButton text={id} what="the attachment's id" />
        </h2>
        <button className="button quiet small icon-only" onClick={onClose} aria-label="Close the attachment">
          <Icon name="close" />
        </button>
      </header>
      {error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading what="the attachment" />
      ) : (
        <>
          <p className="attachment-line">
            <AttachmentStatus attachment={data} />
            <span className="muted">
              attempt {data.attempt + 1} of{" "}
              <Link href={runPath(runId, `/graph?${new URLSearchParams({ node: data.path }).toString()}`)}>
                {data.stage} › {data.state}
              </Link>{" "}
              by {data.agent}
            </span>
          </p>
          {data.superseded && <p className="muted">Its stage was begun anew: nobody is given this one any more.</p>}
          {data.description && !data.error && <p>{data.description}</p>}
          {data.error && <ErrorBlock label="Error" name="Error in the attachment" text={data.error.message} />}
          {data.result !== undefined && (
            <section className="node-value">
              <h3>Result</h3>
              <JsonView value={data.result} label="the result" />
            </section>
          )}
        </>
      )}
    </aside>
  );
}
