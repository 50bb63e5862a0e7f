/* session.tsx: who is looking, and what they may do. Viewers are shown no buttons that would be refused. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, type ReactNode } from "react";
import { api, ApiError, onSessionEnd } from "../api/client";
import type { Role, Session } from "../api/types";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Login } from "./Login";

const RANK: Record<Role, number> = { none: 0, worker: 0, viewer: 1, operator: 2, admin: 3 };

/** As the server tells it; `ended`: there was one, and it is over. */
interface Seen extends Session {
  ended?: boolean;
}

const SessionContext = createContext<Session>({ role: "none", authRequired: false });

export function useSession(): Session {
  return useContext(SessionContext);
}

/** May they start, cancel, decide, signal? */
export function useMayOperate(): boolean {
  return RANK[useSession().role] >= RANK.operator;
}

/** Shows the log-in page until there is a session, then the rest. */
export function SessionGate({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const session = useQuery<Seen>({
    queryKey: ["session"],
    queryFn: ({ signal }) => api.session(signal),
    staleTime: Infinity,
  });

  // The address stays, so that whoever logs in again is where they were.
  useEffect(() => {
    onSessionEnd(() =>
      queries.setQueryData<Seen>(["session"], (before) => ({
        role: "none",
        authRequired: true,
        ended: before !== undefined && (before.role !== "none" || before.ended === true),
      })),
    );
  }, [queries]);

  if (session.isPending) return <Loading what="the session" />;
  const refused = session.error instanceof ApiError && session.error.status === 401;
  if (session.data?.role === "none" || refused)
    return (
      <Login
        ended={session.data?.ended === true}
        onDone={(next) => {
          queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "session" });
          queries.setQueryData(["session"], next);
        }}
      />
    );
  if (!session.data) return <Failure error={session.error} retry={() => void session.refetch()} page />;
  return <SessionContext.Provider value={session.data}>{children}</SessionContext.Provider>;
}
