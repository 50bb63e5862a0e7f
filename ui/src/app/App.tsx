import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { Redirect, Route, Switch } from "wouter";
import { ApiError } from "../api/client";
import { RunsPage } from "../runs/RunsPage";
import { WorkflowsPage } from "../workflows/WorkflowsPage";
import { Boundary } from "../parts/Boundary";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { NotFound } from "./NotFound";
import { SessionGate } from "./session";
import { Shell } from "./Shell";

/* Forms and graphs are large: they are fetched with the first page that needs them. */
const RunPage = lazy(() => import("../run/RunPage").then((module) => ({ default: module.RunPage })));
const WorkflowPage = lazy(() => import("../workflows/WorkflowPage").then((module) => ({ default: module.WorkflowPage })));

const RETRIES = 3;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: false, // the feed says what changed
      // A server that is away may come back; what it refused, it would refuse again.
      retry: (count, error) => error instanceof ApiError && (error.unreachable || error.status === 503) && count < RETRIES,
      networkMode: "always", // loopback needs no network
    },
    mutations: { networkMode: "always" },
  },
});

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <SessionGate>
        <Shell>
          <Suspense fallback={<Loading what="the page" />}>
            <Boundary fallback={(error) => <Failure error={error} retry={() => window.location.reload()} />}>
          <Switch>
            <Route path="/">
              <Redirect to="/workflows" replace />
            </Route>
            <Route path="/workflows" component={WorkflowsPage} />
            <Route path="/workflows/:name/:tab?">
              {(params) => <WorkflowPage key={params.name} name={decodeURIComponent(params.name)} tab={params.tab ?? "launch"} />}
            </Route>
            <Route path="/runs" component={RunsPage} />
            <Route path="/runs/:id/:tab?">
              {(params) => <RunPage key={params.id} runId={decodeURIComponent(params.id)} tab={params.tab} />}
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
            </Boundary>
          </Suspense>
        </Shell>
      </SessionGate>
    </QueryClientProvider>
  );
}
