import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ApiError } from "../api/client";
import { NotFound } from "../app/NotFound";
import { useTitle } from "../app/title";
import { Failure } from "../parts/Failure";
import { Icon } from "../parts/Icon";
import { Loading } from "../parts/Loading";
import { Tabs } from "../parts/Tabs";
import { WORKFLOW_TABS } from "./tabs";
import "./workflows.css";

export function WorkflowPage({ name, tab }: { name: string; tab: string }) {
  useTitle(name);
  const { data, error, refetch } = useQuery({
    queryKey: ["workflow", name],
    queryFn: ({ signal }) => api.workflow(name, signal),
  });
  const current = WORKFLOW_TABS.find((each) => each.id === tab);
  if (!current) return <NotFound />;
  if (error instanceof ApiError && error.status === 404)
    return (
      <NotFound what={`The workflow ${name}`} why="Its name may be mistyped, or the server no longer has its file." />
    );
  if (!data) return error ? <Failure error={error} retry={() => void refetch()} /> : <Loading what="the workflow" />;
  const base = `/workflows/${encodeURIComponent(name)}`;
  const View = current.View;
  return (
    <div className="page">
      <div className="page-head">
        <div>
          <p className="crumbs">
            <Link href="/workflows">Workflows</Link> /
          </p>
          <h1>{data.name}</h1>
          {data.description && <p className="muted">{data.description}</p>}
        </div>
        <div className="actions">
          <Link className="button" href={`/runs?workflow=${encodeURIComponent(name)}`}>
            <Icon name="list" /> Its runs
          </Link>
        </div>
      </div>
      <Tabs
        label="Parts of the workflow"
        current={current.id}
        tabs={WORKFLOW_TABS.map((each) => ({
          id: each.id,
          name: each.name,
          href: each.id === "launch" ? base : `${base}/${each.id}`,
        }))}
      />
      <View workflow={data} />
    </div>
  );
}
