/* client.ts: asks the server, and tells apart how it can go wrong.
 *
 * Every call answers with the document, or throws an ApiError: `status` 0 means that no answer came
 * (the server is down, or the network), anything else is the server's own refusal, with its problem. */
import { readJson, writeJson } from "./json";
import type {
  AttachmentDetail,
  Attachments,
  BulkPiece,
  Counts,
  Decision,
  History,
  LogLevel,
  Logs,
  Members,
  Overview,
  Plan,
  Problem,
  Run,
  RunNodeDetail,
  RunNodes,
  RunPageOf,
  RunStarted,
  Session,
  Why,
  Workflow,
  WorkflowSource,
  WorkflowSummary,
} from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.detail || problem.title);
    this.name = "ApiError";
  }
  /** No answer at all: worth trying again. */
  get unreachable(): boolean {
    return this.status === 0;
  }
}

/** One JSON value, as somebody typed it: it is sent as it is. */
export type JsonText = string;

type Query = Record<string, string | number | undefined | null>;

export const API = "/api/v1";

export function pathWith(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  const text = params.toString();
  return API + path + (text ? `?${text}` : "");
}

let sessionEnded: () => void = () => undefined;
/** Who wants to know that the session is over (401). */
export function onSessionEnd(listener: () => void): void {
  sessionEnded = listener;
}
/** Something was refused with 401: a request, or a stream. */
export function endSession(): void {
  sessionEnded();
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    const body = readJson(await response.text()) as Partial<Problem>;
    if (typeof body.title === "string") return { ...body, title: body.title, status: response.status };
  } catch {
    /* not ours: a proxy's page, or nothing */
  }
  return {
    title: `The server answered with ${response.status} ${response.statusText}`.trim(),
    status: response.status,
  };
}

/** "." and ".." are names, but a browser folds them out of a path. */
const FOLDED = /\/\.\.?(?=\/|$)/;

async function request<T>(
  method: string,
  path: string,
  options: { query?: Query; body?: JsonText; signal?: AbortSignal } = {},
): Promise<T> {
  if (FOLDED.test(path))
    throw new ApiError(-1, {
      title: "A browser cannot ask for a run or a signal of this name",
      status: -1,
      detail: "A browser cannot ask for a run or a signal called . or ..; the program rival can.",
    });
  let response: Response;
  try {
    response = await fetch(pathWith(path, options.query), {
      method,
      credentials: "same-origin",
      headers: {
        Accept: "application/json",
        ...(options.body !== undefined && { "Content-Type": "application/json" }),
      },
      body: options.body,
      signal: options.signal,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, {
      title: "The server does not answer",
      status: 0,
      detail: "No answer from the server. Is `rival serve` running?",
    });
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (response.status === 401 && path !== "/login") endSession();
    throw new ApiError(response.status, problem);
  }
  if (response.status === 204) return undefined as T;
  const text = await response.text();
  return (text ? readJson(text) : undefined) as T;
}

const part = encodeURIComponent;

/** An object of what is there. */
function objectOf(members: Record<string, JsonText | undefined>): JsonText {
  const given = Object.entries(members).filter(([, text]) => text !== undefined && text !== "");
  return `{${given.map(([name, text]) => `${writeJson(name)}:${text}`).join()}}`;
}

export interface RunQuery {
  workflow?: string;
  status?: string;
  since?: number;
  until?: number;
  q?: string;
  waiting?: "somebody";
  /** those that repeat this run */
  rerunOf?: string;
  limit?: number;
  cursor?: string;
}

export interface LogQuery {
  /** of the node at this path, and of all in it */
  path?: string;
  /** of the steps with this alias */
  step?: string;
  level?: LogLevel;
  q?: string;
  after?: number;
  limit?: number;
}

export const api = {
  session: (signal?: AbortSignal) => request<Session>("GET", "/session", { signal }),
  login: (token: string) => request<Session>("POST", "/login", { body: writeJson({ token }) }),
  logout: () => request<Session>("POST", "/logout"),

  workflows: (signal?: AbortSignal) => request<{ workflows: WorkflowSummary[] }>("GET", "/workflows", { signal }),
  workflow: (name: string, signal?: AbortSignal) => request<Workflow>("GET", `/workflows/${part(name)}`, { signal }),
  source: (name: string, signal?: AbortSignal) =>
    request<WorkflowSource>("GET", `/workflows/${part(name)}/source`, { signal }),
  launch: (
    name: string,
    { input, runId, rerunOf }: { input?: JsonText; runId?: string; /** the run that it repeats */ rerunOf?: string },
  ) =>
    request<RunStarted>("POST", `/workflows/${part(name)}/runs`, {
      body: objectOf({ input, runId: runId && writeJson(runId), rerunOf: rerunOf && writeJson(rerunOf) }),
    }),

  /** As text for Prometheus. */
  metrics: async (signal?: AbortSignal): Promise<string> => {
    const response = await fetch("/metrics", { credentials: "same-origin", signal });
    if (response.status === 401) endSession();
    if (!response.ok) throw new ApiError(response.status, await problemOf(response));
    return response.text();
  },

  runs: (query: RunQuery, signal?: AbortSignal) => request<RunPageOf>("GET", "/runs", { query: { ...query }, signal }),
  /** Those that share a store in PostgreSQL; none elsewhere. */
  members: (signal?: AbortSignal) => request<Members>("GET", "/members", { signal }),
  overview: (signal?: AbortSignal) => request<Overview>("GET", "/overview", { signal }),
  counts: (signal?: AbortSignal) => request<Counts>("GET", "/counts", { signal }),
  /** One piece of all that match: go on with its cursor. */
  bulk: (action: "cancel" | "again", query: RunQuery) => {
    const { limit, cursor, ...filter } = query;
    const all = Object.values(filter).every((value) => value === undefined || value === "");
    return request<BulkPiece>("POST", `/bulk/${action}`, {
      query: { ...filter, limit, cursor, ...(all && { all: 1 }) },
    });
  },
  run: (id: string, signal?: AbortSignal) =>
    request<Run>("GET", `/runs/${part(id)}`, { query: { results: 0 }, signal }),
  runPlan: (id: string, signal?: AbortSignal) => request<Plan>("GET", `/runs/${part(id)}/plan`, { signal }),
  nodes: (
    id: string,
    query: { parent?: string; status?: string; offset?: number; limit?: number },
    signal?: AbortSignal,
  ) => request<RunNodes>("GET", `/runs/${part(id)}/nodes`, { query, signal }),
  node: (id: string, path: string, signal?: AbortSignal) =>
    request<RunNodeDetail>("GET", `/runs/${part(id)}/node`, { query: { path }, signal }),
  /** Without its values, which can be large. */
  nodeAttempts: (id: string, path: string, signal?: AbortSignal) =>
    request<RunNodeDetail>("GET", `/runs/${part(id)}/node`, { query: { path, results: 0 }, signal }),
  attachments: (
    id: string,
    query: { stage?: string; state?: string; status?: string; offset?: number; limit?: number },
    signal?: AbortSignal,
  ) => request<Attachments>("GET", `/runs/${part(id)}/attachments`, { query, signal }),
  attachment: (id: string, attachment: string, signal?: AbortSignal) =>
    request<AttachmentDetail>("GET", `/runs/${part(id)}/attachments/${part(attachment)}`, { signal }),
  why: (id: string, signal?: AbortSignal) => request<Why>("GET", `/runs/${part(id)}/why`, { signal }),
  history: (
    id: string,
    query: { after?: string; logs?: 0 | 1; /** only what somebody did */ by?: 1; limit?: number },
    signal?: AbortSignal,
  ) => request<History>("GET", `/runs/${part(id)}/history`, { query, signal }),
  logs: (id: string, query: LogQuery, signal?: AbortSignal) =>
    request<Logs>("GET", `/runs/${part(id)}/logs`, { query: { ...query }, signal }),

  cancel: (id: string) => request<unknown>("POST", `/runs/${part(id)}/cancel`),
  decide: (id: string, body: { action: Decision; path?: string; reason?: string }) =>
    request<unknown>("POST", `/runs/${part(id)}/decide`, { body: writeJson(body) }),
  signal: (id: string, name: string, payload: JsonText) =>
    request<unknown>("POST", `/runs/${part(id)}/signals/${part(name)}`, { body: payload }),
};
