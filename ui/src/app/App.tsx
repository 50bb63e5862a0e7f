import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, type ReactNode } from "react";
import { Route, Switch, useLocation } from "wouter";
import { ApiError } from "../api/client";
import { HomePage } from "../home/HomePage";
import { RunsPage } from "../runs/RunsPage";
import { WorkflowsPage } from "../workflows/WorkflowsPage";
import { Boundary } from "../parts/Boundary";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Folded, NotFound } from "./NotFound";
import { isFolded, nameIn, runIdIn } from "./paths";
import { SessionGate } from "./session";
import { Shell } from "./Shell";

/* Forms and graphs are large: they are fetched with the first page that needs them. */
const RunPage = lazy(() => import("../run/RunPage").then((module) => ({ default: module.RunPage })));
const WorkflowPage = lazy(() =>
  import("../workflows/WorkflowPage").then((module) => ({ default: module.WorkflowPage })),
);

const MembersPage = lazy(() => import("../members/MembersPage").then((module) => ({ default: module.MembersPage })));

const RETRIES = 3;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: false, // the feed says what changed
      // A server that is away may come back; what it refused, it would refuse again.
      retry: (count, error) =>
        error instanceof ApiError && (error.unreachable || error.status === 503) && count < RETRIES,
      networkMode: "always", // loopback needs no network
    },
    mutations: { networkMode: "always" },
  },
});

/** What goes wrong in one page ends with it: the next one begins anew. */
function PageBoundary({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  return (
    <Boundary at={location} fallback={(error) => <Failure error={error} retry={() => window.location.reload()} />}>
      {children}
    </Boundary>
  );
}

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <SessionGate>
        <Shell>
          <Suspense fallback={<Loading what="the page" />}>
            <PageBoundary>
              <Switch>
                <Route path="/" component={HomePage} />
                <Route path="/workflows" component={WorkflowsPage} />
                <Route path="/workflows/:name/:tab?">
                  {(params) => {
                    const name = nameIn(params.name);
                    return name === null ? (
                      <NotFound />
                    ) : (
                      <WorkflowPage key={name} name={name} tab={params.tab ?? "launch"} />
                    );
                  }}
                </Route>
                <Route path="/members" component={MembersPage} />
                <Route path="/runs" component={RunsPage} />
                <Route path="/runs/:id/:tab?">
                  {(params) => {
                    const id = runIdIn(params.id);
                    if (id === null) return <NotFound />;
                    return isFolded(id) ? <Folded runId={id} /> : <RunPage key={id} runId={id} tab={params.tab} />;
                  }}
                </Route>
                <Route>
                  <NotFound />
                </Route>
              </Switch>
            </PageBoundary>
          </Suspense>
        </Shell>
      </SessionGate>
    </QueryClientProvider>
  );
}
