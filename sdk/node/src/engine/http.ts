/** http.ts: the HTTP API of an engine: docs/reference/http-api.md. */
import { RefusedError } from "../worker/connection.js";

/** How the engine's answers by HTTP are called on the wire (`enum rv_err`), so that callers meet one kind of error. */
const CODES: Record<number, number> = { 404: -15, 409: -3, 422: -1, 429: -8, 503: -7 };

export class HttpApi {
  constructor(
    private readonly base: () => Promise<string>,
    private readonly token: string | undefined,
  ) {}

  async request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<any> {
    const response = await this.fetch(method, path, body, signal);
    const text = await response.text();
    const answer: unknown = text === "" ? undefined : JSON.parse(text);
    if (response.ok) return answer;
    throw refusal(response.status, answer);
  }

  async fetch(method: string, path: string, body?: unknown, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
    const url = new URL(path, `${(await this.base()).replace(/\/$/, "")}/`);
    return fetch(url, {
      method,
      headers: {
        ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  }
}

export class HttpError extends RefusedError {
  constructor(
    readonly status: number,
    message: string,
    violations: { path: string; message: string }[] | undefined,
    readonly problem: Record<string, unknown>,
  ) {
    super(message, CODES[status] ?? -1, violations);
  }
}

export function refusal(status: number, answer: unknown): HttpError {
  const problem = (typeof answer === "object" && answer !== null ? answer : {}) as Record<string, unknown>;
  return new HttpError(
    status,
    String(problem.detail ?? problem.title ?? `the server answered ${status}`),
    problem.violations as { path: string; message: string }[] | undefined,
    problem,
  );
}
