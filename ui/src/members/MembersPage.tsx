/* MembersPage.tsx: the processes that share the store: what each has to do, and how long its lease lasts. */
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Member } from "../api/types";
import { useTitle } from "../app/title";
import { Empty } from "../parts/Empty";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { formatAbsolute, formatDuration } from "../parts/time";
import { useNow, When } from "../parts/Time";
import "./members.css";

/** No feed tells of members; a lease is renewed several times while it lasts. */
const READ_MS = 2000;

export function MembersPage() {
  useTitle("Members");
  const { data, error, refetch } = useQuery({
    queryKey: ["members"],
    queryFn: ({ signal }) => api.members(signal),
    refetchInterval: READ_MS,
  });
  if (!data) return error ? <Failure error={error} retry={() => void refetch()} /> : <Loading what="the members" />;
  return (
    <div className="page">
      <div className="page-head">
        <div>
          <h1>Members</h1>
          <p className="muted">
            The processes that share this store. If one is silent until its lease ends, the others continue its runs.
          </p>
        </div>
      </div>
      {error && <Failure error={error} retry={() => void refetch()} />}
      {data.members.length === 0 ? <OneProcess /> : <MemberTable members={data.members} />}
    </div>
  );
}

function OneProcess() {
  return (
    <Empty icon="system" title="One process drives this store">
      <p>Several servers share the runs of a store in PostgreSQL: start each of them with the same address.</p>
      <pre>
        <code>rival serve . --store postgres://db.example.org/rival</code>
      </pre>
    </Empty>
  );
}

function MemberTable({ members }: { members: readonly Member[] }) {
  const all = members.reduce((sum, each) => sum + each.runs, 0);
  const sorted = [...members].sort((a, b) => b.runs - a.runs || a.since - b.since);
  return (
    <div className="card members">
      <table>
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">Runs in memory</th>
            <th scope="col">Lease</th>
            <th scope="col">Member since</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((member) => (
            <tr key={member.id}>
              <th scope="row" title={`member ${member.id}`}>
                {member.process}
                {member.self && <span className="muted"> · answers this page</span>}
              </th>
              <td data-label="Runs in memory">
                <span className="member-load">
                  <meter min={0} max={Math.max(1, all)} value={member.runs} aria-label={`Share of ${member.process}`} />
                  <span className="tabular">
                    {member.runs.toLocaleString("en")}
                    {all > 0 && <span className="muted"> · {Math.round((100 * member.runs) / all)} %</span>}
                  </span>
                </span>
              </td>
              <td data-label="Lease">
                <Lease until={member.leaseUntil} />
              </td>
              <td data-label="Member since">
                <When at={member.since} />
              </td>
              <td data-label="Version" className="mono">
                {member.version}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Lease({ until }: { until: number }) {
  const left = until - useNow();
  return left > 0 ? (
    <span className="tabular clock" title={`Until ${formatAbsolute(until)}, unless it is renewed`}>
      {formatDuration(Math.ceil(left / 1000) * 1000).replace(".0 s", " s")} left
    </span>
  ) : (
    <span className="member-over" title={`Since ${formatAbsolute(until)}`}>
      over: its runs are taken over
    </span>
  );
}
