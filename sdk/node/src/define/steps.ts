/** steps.ts: steps that the engine does itself, and workflows as steps. */
import { dirname, isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import type { PredefinedStep, StepContext, WorkflowDefinition, WorkflowReference } from "../types.js";
import { brand, isBranded } from "./brand.js";

/** A value, or a function of the context that gives it when the step begins. */
export type Dynamic<T> = T | ((context: StepContext<any, any>) => T | Promise<T>);

export interface HttpStepOptions {
  url: Dynamic<string>;
  /** Default GET. */
  method?: Dynamic<"GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS">;
  headers?: Dynamic<Record<string, string>>;
  /** Anything JSON; a string is sent as it is. */
  body?: Dynamic<unknown>;
  responseType?: Dynamic<"json" | "text">;
  /** Milliseconds, default 30,000. */
  timeout?: Dynamic<number>;
  /** Default true: an answer of 400 or more is an error. */
  throwOnError?: Dynamic<boolean>;
  /** Default `httpRequest`. */
  alias?: string;
}

/** What an `httpStep` gives. */
export interface HttpResult<Data = any> {
  status: number;
  statusText: string;
  headers: Record<string, string>;
  data: Data;
  duration: number;
}

export interface DelayStepOptions {
  seconds?: Dynamic<number>;
  milliseconds?: Dynamic<number>;
  alias?: string;
}

export interface SignalStepOptions {
  /** The name of the signal that it waits for. */
  name: Dynamic<string>;
  /** Milliseconds. */
  timeout?: Dynamic<number>;
  /** The result when the time is over; without it the step fails. No function: it is known before the step is reached. */
  default?: unknown;
  /** Default `signal`. */
  alias?: string;
}

function predefined(kind: PredefinedStep["kind"], all: object): PredefinedStep {
  const { alias, ...rest } = all as Record<string, unknown>;
  const options = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return brand("predefined", { kind, options, ...(alias === undefined ? {} : { alias: alias as string }) });
}

function checkKeys(what: string, options: object, known: string[]): void {
  if (typeof options !== "object" || options === null) throw new TypeError(`${what}: options are needed`);
  for (const key of Object.keys(options))
    if (!known.includes(key)) throw new TypeError(`${what}: unknown option '${key}'; known: ${known.join(", ")}`);
}

function checkMs(what: string, key: string, value: unknown): void {
  if (value === undefined || typeof value === "function") return;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    throw new TypeError(`${what}: invalid ${key} ${String(value)}: must be a number, not below 0`);
}

/** A request by HTTP. The engine makes it: it takes no place in this process, and is retried as its step's config says. */
export function httpStep(options: HttpStepOptions): PredefinedStep {
  const known = ["url", "method", "headers", "body", "responseType", "timeout", "throwOnError", "alias"];
  checkKeys("httpStep", options, known);
  if (typeof options.url !== "string" && typeof options.url !== "function")
    throw new TypeError("httpStep: 'url' must be a text or a function");
  checkMs("httpStep", "timeout", options.timeout);
  return predefined("http", options);
}

/** A wait by a durable timer: a restart does not begin it anew. */
export function delayStep(options: DelayStepOptions): PredefinedStep {
  checkKeys("delayStep", options, ["seconds", "milliseconds", "alias"]);
  if ((options.seconds === undefined) === (options.milliseconds === undefined))
    throw new TypeError("delayStep: exactly one of 'seconds' and 'milliseconds' is needed");
  checkMs("delayStep", "seconds", options.seconds);
  checkMs("delayStep", "milliseconds", options.milliseconds);
  return predefined("delay", options);
}

/** A wait for a message from outside: `engine.signal(runId, name, payload)`; its payload is the result. */
export function signalStep(options: SignalStepOptions): PredefinedStep {
  checkKeys("signalStep", options, ["name", "timeout", "default", "alias"]);
  if (typeof options.name !== "string" && typeof options.name !== "function")
    throw new TypeError("signalStep: 'name' must be a text or a function");
  checkMs("signalStep", "timeout", options.timeout);
  if (typeof options.default === "function") throw new TypeError("signalStep: 'default' must be a value, not a function");
  return predefined("signal", options);
}

export interface NestOptions {
  alias?: string;
  /** Its input: a value, or a function of the context. Default: the parent's. */
  input?: unknown;
}

/** The folder of the module that called the function which calls this. */
function folderOfCaller(): string | undefined {
  const holder: { stack?: string } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 5;
  Error.captureStackTrace(holder, workflow);
  Error.stackTraceLimit = limit;
  const line = holder.stack?.split("\n")[1] ?? "";
  const at = /(file:\/\/[^)\s]+?|\/[^):]+?|[A-Za-z]:\\[^):]+?)(?:\?[^):]*)?:\d+:\d+\)?$/.exec(line)?.[1];
  if (at === undefined) return undefined;
  return dirname(at.startsWith("file:") ? fileURLToPath(at) : at);
}

/**
 * Another workflow as a step: a file (`./payment.ts`, relative to the file that says so), the name of a registered
 * workflow, or a workflow that was built here.
 */
export function workflow(
  target: string | WorkflowDefinition | { build(): WorkflowDefinition },
  options: NestOptions = {},
): WorkflowReference {
  checkKeys("workflow", options, ["alias", "input"]);
  const found = typeof target === "string" || isBranded("definition", target) ? target : buildOf(target);
  if (found === undefined || found === "")
    throw new TypeError("workflow: a file, the name of a workflow, or a workflow is needed");
  const base = typeof found === "string" && isFile(found) && !isAbsolute(found) ? folderOfCaller() : undefined;
  return brand("reference", {
    target: found as string | WorkflowDefinition,
    ...(base === undefined ? {} : { base }),
    ...(options.alias === undefined ? {} : { alias: options.alias }),
    ...("input" in options ? { input: options.input } : {}),
  });
}

/** Is that the name of a file? Names of workflows have no slash and no such ending. */
export function isFile(target: string): boolean {
  return target.startsWith(".") || target.includes("/") || /\.(ts|mts|js|mjs|ya?ml|json|c|so)$/.test(target);
}

function buildOf(value: unknown): WorkflowDefinition | undefined {
  const build = (value as { build?: unknown } | null)?.build;
  return typeof build === "function" ? (build.call(value) as WorkflowDefinition) : undefined;
}
