/**
 * normalize.ts: from what users write to definitions: every node with its id and alias, every config checked.
 *
 * Everything that is wrong is collected, with the path of its node, and told at once. The rules are those of the engine
 * (src/plan/check.c), which judges again; here they give an answer before anything runs, with the user's own stack.
 */
import type {
  BodyDefinition,
  BranchOptions,
  ConcurrentDefinition,
  ConcurrentOptions,
  Description,
  ForEachOptions,
  LoopOptions,
  NestedOptions,
  NodeDefinition,
  PredefinedStep,
  StepConfig,
  StepFunction,
  StepOptions,
  WorkflowDefinition,
  WorkflowReference,
} from "../types.js";
import { brand, isBranded } from "./brand.js";

const ALIAS = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const MAX_NAME = 200; // bytes, as in the engine
const MAX_MS = 3_155_760_000_000; // a hundred years, as in the engine

const CONFIG_KEYS = [
  "timeout",
  "onTimeout",
  "maxAttempts",
  "backoff",
  "backoffBaseMs",
  "maxBackoffMs",
  "jitter",
  "retryOn",
  "noRetryOn",
  "continueOnError",
  "onError",
  "needs",
  "actor",
] as const;

/** Keys of nodes, by the type they tell when `type` itself is left out. */
const SHAPES: { type: string; key: string; keys: string[] }[] = [
  { type: "forEach", key: "items", keys: ["items", "run", "parallel", "concurrency", "onFailure", "label"] },
  { type: "branch", key: "if", keys: ["if", "then", "else"] },
  { type: "loop", key: "body", keys: ["body", "while", "until", "maxIterations", "keep"] },
  { type: "concurrent", key: "steps", keys: ["steps", "continueOn", "onFailure", "join"] },
  { type: "workflow", key: "workflow", keys: ["workflow", "input"] },
];
const NODE_KEYS = ["type", "id", "alias", "name", "when", "description"];

/** What is wrong with a name, or undefined. */
export function nameFault(name: unknown): string | undefined {
  if (typeof name !== "string" || name === "") return "must be a text that is not empty";
  if (Buffer.byteLength(name) > MAX_NAME) return `must have at most ${MAX_NAME} bytes`;
  if (!ALIAS.test(name)) return "must begin with a letter or _, and have only letters, digits and _ . -";
  if (name.includes("__")) return "must not contain '__'";
  return undefined;
}

export interface Violation {
  path: string;
  message: string;
}

/** The aliases of one sequence: explicit ones are unique, implied ones get a number. */
class Aliases {
  private readonly taken = new Set<string>();
  private readonly next = new Map<string, number>();

  take(alias: string): boolean {
    if (this.taken.has(alias)) return false;
    this.taken.add(alias);
    return true;
  }

  imply(base: string): string {
    if (this.take(base)) return base;
    for (let n = this.next.get(base) ?? 2; ; n++) {
      const alias = `${base}_${n}`;
      if (this.take(alias)) {
        this.next.set(base, n + 1);
        return alias;
      }
    }
  }
}

type Options = Record<string, unknown>;

export class Normalizer {
  readonly violations: Violation[] = [];
  private readonly counts = { s: 0, l: 0, p: 0, b: 0, w: 0 };
  private readonly top = new Aliases();

  /** The definition of one more node of the workflow itself. */
  add(entry: unknown): NodeDefinition {
    return this.node(entry, this.top, "");
  }

  /** The next id of its kind; a node that was built before keeps its own, unless a node before it was given that one. */
  private id(kind: keyof Normalizer["counts"], node: object = {}): string {
    const { id: said, alias } = node as { id?: unknown; alias?: unknown };
    let id = `${kind}${++this.counts[kind]}`;
    if (typeof said === "string" && said !== "") {
      if (this.saidIds.has(said))
        this.refuse(String(alias ?? ""), `duplicate id '${said}': another node of this workflow has it`);
      this.saidIds.add(said);
      if (!this.ids.has(said)) id = said;
    }
    while (id !== said && this.ids.has(id)) id = `${kind}${++this.counts[kind]}`;
    this.ids.add(id);
    return id;
  }
  private readonly ids = new Set<string>();
  private readonly saidIds = new Set<string>();

  private refuse(path: string, message: string): void {
    this.violations.push({ path, message });
  }

  private alias(said: unknown, implied: string, aliases: Aliases, above: string, what = "alias"): string {
    if (said === undefined) {
      const fault = nameFault(implied);
      if (fault !== undefined)
        this.refuse(join(above, implied), `its name '${implied}' cannot be its alias: ${fault}; give it one`);
      return aliases.imply(implied);
    }
    const fault = nameFault(said);
    const alias = String(said);
    if (fault !== undefined) this.refuse(join(above, alias), `invalid alias '${alias}': ${fault}`);
    else if (!aliases.take(alias))
      this.refuse(
        join(above, alias),
        what === "alias" ? `alias '${alias}' must be unique in its sequence` : `duplicate concurrent child alias '${alias}': it must be unique`,
      );
    return alias;
  }

  private nodes(entries: unknown, above: string): NodeDefinition[] {
    if (!Array.isArray(entries)) {
      this.refuse(above, "must be a list of steps");
      return [];
    }
    const aliases = new Aliases();
    return entries.map((entry) => this.node(entry, aliases, above));
  }

  private node(entry: unknown, aliases: Aliases, above: string, what = "alias"): NodeDefinition {
    if (typeof entry === "function" && !isBuilder(entry))
      return this.step({ fn: entry as StepFunction }, aliases, above, what);
    if (isPredefined(entry)) return this.step({ fn: entry }, aliases, above, what);
    if (isReference(entry) || isDefinition(entry) || isBuilder(entry)) {
      const options: Options = { type: "workflow", workflow: entry };
      return this.nested(options as unknown as NestedOptions, aliases, above, what);
    }
    if (typeof entry !== "object" || entry === null || Array.isArray(entry)) {
      this.refuse(above, `a step must be a function, an object or a workflow, not ${describe(entry)}`);
      return { id: this.id("s"), alias: aliases.imply("node"), run: () => undefined };
    }
    const options = entry as Options;
    if (("fn" in options || "run" in options) && !("items" in options) && options.type === undefined)
      return this.stepOrNested(options, aliases, above, what);
    const type = options.type === "parallel" ? "concurrent" : (options.type ?? shapeOf(options));
    switch (type) {
      case "forEach":
        return this.forEach(options as unknown as ForEachOptions, aliases, above, what);
      case "concurrent":
        return this.concurrent(options as unknown as ConcurrentOptions, aliases, above, what);
      case "branch":
        return this.branch(options as unknown as BranchOptions, aliases, above, what);
      case "loop":
        return this.loop(options as unknown as LoopOptions, aliases, above, what);
      case "workflow":
        return this.nested(options as unknown as NestedOptions, aliases, above, what);
      case "step":
        return this.stepOrNested(options, aliases, above, what);
      default:
        this.refuse(
          join(above, String(options.alias ?? options.name ?? "node")),
          type === undefined
            ? `cannot tell what kind of step this is: it has ${Object.keys(options).join(", ") || "nothing"}; a step has 'fn' or 'run'`
            : `unknown type '${String(type)}'`,
        );
        return { id: this.id("s"), alias: aliases.imply("node"), run: () => undefined };
    }
  }

  /** `{ fn, … }`: the function may also be a predefined step, or a workflow. */
  private stepOrNested(options: Options, aliases: Aliases, above: string, what: string): NodeDefinition {
    const fn = options.fn ?? options.run;
    if (isReference(fn) || isDefinition(fn) || isBuilder(fn)) {
      const { fn: left, run, ...rest } = options;
      return this.nested({ ...rest, type: "workflow", workflow: fn } as unknown as NestedOptions, aliases, above, what);
    }
    return this.step(options as StepOptions, aliases, above, what);
  }

  private step(options: StepOptions, aliases: Aliases, above: string, what: string): NodeDefinition {
    const run = options.fn ?? options.run;
    const said = options.alias ?? options.name ?? (isPredefined(run) ? run.alias : undefined);
    const alias = this.alias(said, impliedAlias(run), aliases, above, what);
    const path = join(above, alias);
    if (options.fn !== undefined && options.run !== undefined) this.refuse(path, "has both 'fn' and 'run': one is enough");
    if (typeof run !== "function" && !isPredefined(run))
      this.refuse(path, `'fn' must be a function or a predefined step, not ${describe(run)}`);
    const { fn, run: other, alias: saidAlias, name, type, id, config: built, ...rest } = options as StepOptions & Options;
    if (built !== undefined && (typeof built !== "object" || built === null || Array.isArray(built)))
      this.refuse(path, `invalid config: must be an object, not ${describe(built)}`);
    const config = { ...(built as StepConfig | undefined), ...rest };
    this.config(config, path);
    const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
    return {
      id: this.id("s", options),
      alias,
      run: run as StepFunction | PredefinedStep,
      ...(Object.keys(given).length > 0 ? { config: given as StepConfig } : {}),
    };
  }

  private config(config: StepConfig, path: string): void {
    const all = config as Options;
    for (const key of Object.keys(all))
      if (key !== "when" && key !== "description" && !(CONFIG_KEYS as readonly string[]).includes(key)) this.refuse(path, `unknown key '${key}'`);
    const number = (key: string, good: (n: number) => boolean, must: string): void => {
      const value = all[key];
      if (value !== undefined && (typeof value !== "number" || !good(value)))
        this.refuse(path, `invalid ${key} ${describe(value)}: must be ${must}`);
    };
    const oneOf = (key: string, values: unknown[]): void => {
      if (all[key] !== undefined && !values.includes(all[key]))
        this.refuse(path, `invalid ${key} ${describe(all[key])}: must be ${values.join(" or ")}`);
    };
    const isFunction = (key: string): void => {
      if (all[key] !== undefined && typeof all[key] !== "function")
        this.refuse(path, `invalid ${key}: must be a function, not ${describe(all[key])}`);
    };
    const ms = (n: number): boolean => Number.isSafeInteger(n) && n >= 0 && n <= MAX_MS;
    number("timeout", (n) => ms(n) && n > 0, "milliseconds, above 0 and at most a hundred years");
    oneOf("onTimeout", ["stop", "retry"]);
    number("maxAttempts", (n) => Number.isInteger(n) && n >= 1, "an integer, at least 1");
    oneOf("backoff", ["linear", "exponential"]);
    number("backoffBaseMs", ms, "milliseconds, not below 0");
    number("maxBackoffMs", ms, "milliseconds, not below 0");
    number("jitter", (n) => n >= 0 && n <= 1, "from 0 to 1");
    oneOf("continueOnError", [true, false]);
    isFunction("onError");
    isFunction("when");
    this.description(all.description, path);
    for (const key of ["retryOn", "noRetryOn", "needs"]) {
      const value = all[key];
      if (value !== undefined && (!Array.isArray(value) || value.length === 0))
        this.refuse(path, `invalid ${key}: must be a list that is not empty`);
    }
    const actor = all.actor as { options?: Options } | undefined;
    if (actor === undefined) return;
    if (typeof actor !== "object" || actor === null || (actor.options !== undefined && typeof actor.options !== "object")) {
      this.refuse(path, "invalid actor: must be { options }");
      return;
    }
    const limit = actor.options?.actionTimeout;
    if (limit !== undefined && !(typeof limit === "number" && ms(limit) && limit > 0))
      this.refuse(path, `invalid actor.options.actionTimeout ${describe(limit)}: must be milliseconds, above 0`);
  }

  /** What all nodes but steps share; refuses what only steps have. */
  private frame(options: Options, type: string, path: string): { when?: StepFunction; description?: Description } {
    const keys = SHAPES.find((shape) => shape.type === type)!.keys;
    for (const key of Object.keys(options)) {
      if (NODE_KEYS.includes(key) || keys.includes(key) || options[key] === undefined) continue;
      if ((CONFIG_KEYS as readonly string[]).includes(key))
        this.refuse(path, `step-only config: '${key}' is for steps, not for a ${type}`);
      else this.refuse(path, `unknown key '${key}'`);
    }
    if (options.when !== undefined && typeof options.when !== "function")
      this.refuse(path, `invalid when: must be a function, not ${describe(options.when)}`);
    this.description(options.description, path);
    return pick(options as { when?: StepFunction; description?: Description }, ["when", "description"]);
  }

  private description(said: unknown, path: string): void {
    if (said !== undefined && typeof said !== "string" && typeof said !== "function")
      this.refuse(path, `invalid description: must be a text or a function, not ${describe(said)}`);
  }

  private forEach(options: ForEachOptions, aliases: Aliases, above: string, what: string): NodeDefinition {
    const id = this.id("l", options);
    const alias = this.alias(options.alias ?? options.name, "forEach", aliases, above, what);
    const path = join(above, alias);
    const frame = this.frame(options as unknown as Options, "forEach", path);
    if (typeof options.items !== "function" && !Array.isArray(options.items))
      this.refuse(path, `invalid items: must be a function that returns an array, or an array, not ${describe(options.items)}`);
    this.oneOf(options.parallel, "parallel", [true, false], path);
    this.oneOf(options.onFailure, "onFailure", ["fail", "collect"], path);
    const most = options.concurrency;
    if (most !== undefined && !(Number.isInteger(most) && most >= 1))
      this.refuse(path, `invalid concurrency ${describe(most)}: must be an integer, at least 1`);
    else if (most !== undefined && options.parallel !== true) this.refuse(path, "'concurrency' is only for 'parallel'");
    if (options.label !== undefined && typeof options.label !== "string")
      this.refuse(path, `invalid label: must be a text with \${ … }, not ${describe(options.label)}`);
    return {
      type: "forEach",
      id,
      alias,
      items: options.items,
      run: this.body(options.run, path, "run"),
      ...pick(options, ["parallel", "concurrency", "onFailure", "label"]),
      ...frame,
    };
  }

  private concurrent(options: ConcurrentOptions, aliases: Aliases, above: string, what: string): NodeDefinition {
    const id = this.id("p", options);
    const alias = this.alias(options.alias ?? options.name, "concurrent", aliases, above, what);
    const path = join(above, alias);
    const frame = this.frame(options as unknown as Options, "concurrent", path);
    this.oneOf(options.continueOn, "continueOn", ["all", "detached"], path);
    this.oneOf(options.onFailure, "onFailure", ["fail", "collect"], path);
    const { join: least } = options;
    if (least !== undefined && least !== "all" && least !== "first" && !(Number.isInteger(least) && (least as number) >= 1))
      this.refuse(path, `invalid join ${describe(least)}: must be all, first or a number from 1`);
    if (least !== undefined && least !== "all" && options.continueOn === "detached")
      this.refuse(path, "'join' cannot be with continueOn: detached");
    const steps: ConcurrentDefinition["steps"] = [];
    if (!Array.isArray(options.steps) || options.steps.length === 0) this.refuse(path, "'steps' must be a list that is not empty");
    else {
      const children = new Aliases();
      for (const child of options.steps) {
        if (isList(child)) {
          const name = this.alias(child.alias, "child", children, path, "child");
          steps.push({ alias: name, nodes: this.nodes(child.steps ?? child.nodes, join(path, name)) });
        } else steps.push(this.node(child, children, path, "child"));
      }
    }
    return {
      type: "concurrent",
      id,
      alias,
      steps,
      continueOn: options.continueOn ?? "all",
      onFailure: options.onFailure ?? "fail",
      ...pick(options, ["join"]),
      ...frame,
    };
  }

  private branch(options: BranchOptions, aliases: Aliases, above: string, what: string): NodeDefinition {
    const id = this.id("b", options);
    const alias = this.alias(options.alias ?? options.name, "branch", aliases, above, what);
    const path = join(above, alias);
    const frame = this.frame(options as unknown as Options, "branch", path);
    if (typeof options.if !== "function") this.refuse(path, `invalid if: must be a function, not ${describe(options.if)}`);
    return {
      type: "branch",
      id,
      alias,
      if: options.if,
      then: this.nodes(options.then, join(path, "then")),
      ...(options.else === undefined ? {} : { else: this.nodes(options.else, join(path, "else")) }),
      ...frame,
    };
  }

  private loop(options: LoopOptions, aliases: Aliases, above: string, what: string): NodeDefinition {
    const id = this.id("l", options);
    const alias = this.alias(options.alias ?? options.name, "loop", aliases, above, what);
    const path = join(above, alias);
    const frame = this.frame(options as unknown as Options, "loop", path);
    const tests = [options.while, options.until].filter((test) => test !== undefined);
    if (tests.length !== 1 || typeof tests[0] !== "function")
      this.refuse(path, "needs exactly one of 'while' and 'until', a function");
    const most = options.maxIterations;
    if (most !== undefined && !(Number.isInteger(most) && most >= 1))
      this.refuse(path, `invalid maxIterations ${describe(most)}: must be an integer, at least 1`);
    this.oneOf(options.keep, "keep", ["all", "last", "none"], path);
    return {
      type: "loop",
      id,
      alias,
      body: this.body(options.body, path, "body"),
      ...pick(options, ["while", "until", "maxIterations", "keep"]),
      ...frame,
    };
  }

  private nested(options: NestedOptions, aliases: Aliases, above: string, what: string): NodeDefinition {
    const target = isBuilder(options.workflow)
      ? (options.workflow as { build(): WorkflowDefinition }).build()
      : options.workflow;
    const id = this.id("w", options);
    const reference = isReference(target) ? target : undefined;
    const inner = reference !== undefined && typeof reference.target !== "string" ? reference.target : target;
    const alias = this.alias(
      options.alias ?? options.name ?? reference?.alias,
      nestedName(inner as string | WorkflowDefinition | WorkflowReference),
      aliases,
      above,
      what,
    );
    const path = join(above, alias);
    const frame = this.frame(options as unknown as Options, "workflow", path);
    if (typeof target !== "string" && reference === undefined && !isDefinition(target))
      this.refuse(path, `'workflow' must be a workflow, a file or a name, not ${describe(target)}`);
    const input = "input" in options ? options.input : reference?.input;
    return {
      type: "workflow",
      id,
      alias,
      workflow: (typeof inner === "string" ? brand("reference", { target: inner }) : inner) as WorkflowDefinition | WorkflowReference,
      ...(input === undefined ? {} : { input }),
      ...frame,
    };
  }

  /** What an iteration runs. */
  private body(body: unknown, path: string, key: string): BodyDefinition {
    if (Array.isArray(body)) {
      if (body.length === 0) this.refuse(path, `'${key}' must not be empty`);
      return this.nodes(body, join(path, key));
    }
    if (isBuilder(body)) return (body as { build(): WorkflowDefinition }).build();
    if (isDefinition(body) || isReference(body)) return body as WorkflowDefinition | WorkflowReference;
    if (body === undefined) {
      this.refuse(path, `'${key}' is missing`);
      return [];
    }
    return this.node(body, new Aliases(), join(path, key));
  }

  private oneOf(value: unknown, key: string, values: unknown[], path: string): void {
    if (value !== undefined && !values.includes(value))
      this.refuse(path, `invalid ${key} ${describe(value)}: must be ${values.join(" or ")}`);
  }
}

function pick<T extends object, K extends keyof T>(from: T, keys: K[]): Pick<T, K> {
  const picked: Partial<T> = {};
  for (const key of keys) if (from[key] !== undefined) picked[key] = from[key];
  return picked as Pick<T, K>;
}

function join(above: string, below: string): string {
  return above === "" ? below : `${above}:${below}`;
}

function describe(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return `'${value}'`;
  return Array.isArray(value) ? "a list" : typeof value === "function" ? "a function" : `an ${typeof value}`;
}

function shapeOf(options: Options): string | undefined {
  return SHAPES.find((shape) => shape.key in options)?.type;
}

/** A child of a concurrent block that is a list of nodes. */
function isList(child: unknown): child is { alias: string; steps?: unknown[]; nodes?: unknown[] } {
  const options = child as Options;
  return (
    typeof child === "object" &&
    child !== null &&
    Array.isArray(options.steps ?? options.nodes) &&
    options.type === undefined &&
    !isDefinition(child) &&
    Object.keys(options).every((key) => ["alias", "steps", "nodes"].includes(key))
  );
}

function impliedAlias(run: unknown): string {
  if (isPredefined(run)) return run.kind === "http" ? "httpRequest" : run.kind;
  const name = typeof run === "function" ? run.name : "";
  // A bound function is called "bound f"; an anonymous one has no name at all.
  return name.replace(/^(?:bound )+/, "") || "step";
}

function nestedName(target: string | WorkflowDefinition | WorkflowReference): string {
  const name = typeof target === "string" ? target : "target" in target ? String(target.target) : target.name;
  const file = name.slice(name.lastIndexOf("/") + 1);
  return file.replace(/\.[a-z]+$/, "");
}

export function isPredefined(value: unknown): value is PredefinedStep {
  return isBranded("predefined", value);
}

export function isReference(value: unknown): value is WorkflowReference {
  return isBranded("reference", value);
}

export function isDefinition(value: unknown): value is WorkflowDefinition {
  return isBranded("definition", value);
}

export function isBuilder(value: unknown): value is { build(): WorkflowDefinition } {
  return (
    (typeof value === "object" || typeof value === "function") &&
    value !== null &&
    typeof (value as { build?: unknown }).build === "function"
  );
}
