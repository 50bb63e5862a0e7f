/** steps.ts: steps that the engine does itself, and workflows as steps. */
import { dirname, isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import type { InputSchema, PredefinedStep, StepContext, WorkflowDefinition, WorkflowReference } from "../types.js";
import { brand, isBranded } from "./brand.js";
import { jsonSchemaOf } from "./schema.js";

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
  /** With units, as in files: `1h30m`, `250ms`; or a number of milliseconds. */
  duration?: Dynamic<string | number>;
  alias?: string;
}

export interface SignalStepOptions {
  /** The name of the signal that it waits for. */
  name: Dynamic<string>;
  /** Milliseconds. */
  timeout?: Dynamic<number>;
  /**
   * The result when the time is over; without it the step fails. No function: it is part of the plan, so that the timer alone ends the
   * wait, whoever is connected then. For a computed one use `default: null`, and compute it in the step that reads it.
   */
  default?: unknown;
  /** What a payload must be: Zod, or JSON Schema. Another one is refused when it is sent. Then `name` must be a text. */
  schema?: InputSchema;
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

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a duration, as src/base/duration.c reads it. */
function durationMs(duration: unknown): number {
  const wrong = new TypeError(`delayStep: invalid duration ${String(duration)}: must be like 250ms, 30s or 1h30m, or milliseconds`);
  if (typeof duration === "number" && Number.isFinite(duration) && duration >= 0) return duration;
  if (typeof duration !== "string" || !/^(?:\d+(?:\.\d{1,3})?(?:ms|s|m|h|d))+$/.test(duration)) throw wrong;
  let sum = 0;
  for (const [, whole, decimals = "", unit] of duration.matchAll(/(\d+)(?:\.(\d{1,3}))?(ms|[smhd])/g))
    sum += Number(whole) * UNITS[unit!]! + Math.floor((Number(decimals.padEnd(3, "0")) * UNITS[unit!]!) / 1000);
  return sum;
}

/** A wait by a durable timer: a restart does not begin it anew. */
export function delayStep(options: DelayStepOptions): PredefinedStep {
  checkKeys("delayStep", options, ["seconds", "milliseconds", "duration", "alias"]);
  const { duration, ...rest } = options;
  if ([options.seconds, options.milliseconds, duration].filter((one) => one !== undefined).length !== 1)
    throw new TypeError("delayStep: exactly one of 'seconds', 'milliseconds' and 'duration' is needed");
  checkMs("delayStep", "seconds", options.seconds);
  checkMs("delayStep", "milliseconds", options.milliseconds);
  if (duration === undefined) return predefined("delay", rest);
  const milliseconds: Dynamic<number> =
    typeof duration === "function" ? async (context) => durationMs(await duration(context)) : durationMs(duration);
  return predefined("delay", { ...rest, milliseconds });
}

/** A wait for a message from outside: `engine.signal(runId, name, payload)`; its payload is the result. */
export function signalStep(options: SignalStepOptions): PredefinedStep {
  checkKeys("signalStep", options, ["name", "timeout", "default", "schema", "alias"]);
  if (typeof options.name !== "string" && typeof options.name !== "function")
    throw new TypeError("signalStep: 'name' must be a text or a function");
  checkMs("signalStep", "timeout", options.timeout);
  if (typeof options.default === "function")
    throw new TypeError("signalStep: 'default' must be a value, not a function; with null, the step that reads it can compute one");
  const { schema } = options;
  if (schema === undefined) return predefined("signal", options);
  const zod3 = typeof schema === "object" && schema !== null && !("_zod" in schema) && "_def" in schema;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema) || zod3)
    throw new TypeError("signalStep: 'schema' must be a schema of Zod 4, or a JSON Schema");
  if (typeof options.name === "function")
    throw new TypeError("signalStep: with 'schema', 'name' must be a text: a payload may come before the step is reached");
  return predefined("signal", { ...options, schema: jsonSchemaOf(schema) });
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
