/**
 * reads.ts: which parts of the context a function may read, by its source.
 *
 * The context is synchronous (`steps.a.result`), so what a function reads has to be here before it runs. Small values come along
 * anyway; long ones are fetched first, and only for functions that may read them. This looks at the parameter: `({ input, steps })`
 * reads these two; `(context)` reads `context.x`, `context.y`, or everything if it is handed on. It errs to one side only: what it
 * does not understand reads everything.
 */
export interface Reads {
  /** Members of the context; undefined: any. */
  readonly members: ReadonlySet<string> | undefined;
  /** Aliases of `steps`; undefined: any. */
  readonly steps: ReadonlySet<string> | undefined;
  /** Members of `loop`; undefined: any. */
  readonly loop: ReadonlySet<string> | undefined;
  /** Members of any `.parent` in it; undefined: any. */
  readonly parent: ReadonlySet<string> | undefined;
}

const EVERYTHING: Reads = { members: undefined, steps: undefined, loop: undefined, parent: undefined };
const NOTHING: Reads = { members: new Set(), steps: new Set(), loop: new Set(), parent: new Set() };
const WORD = "[\\p{ID_Start}$_][\\p{ID_Continue}$\\u200c\\u200d]*";
const HEAD = new RegExp(`^(?:async\\s*(?=[\\s(*])\\s*)?(?:function\\s*\\*?\\s*)?(?:${WORD}\\s*)?\\(\\s*|^(?:async\\s+)?(?=${WORD}\\s*=>)`, "u");

export function readsOf(fn: (...args: never[]) => unknown): Reads {
  let reads = cache.get(fn);
  if (reads === undefined) {
    reads = analyse(Function.prototype.toString.call(fn));
    cache.set(fn, reads);
  }
  return reads;
}
const cache = new WeakMap<(...args: never[]) => unknown, Reads>();

function analyse(source: string): Reads {
  if (/\[native code\]|\barguments\b|\beval\b|^class\b/.test(source)) return EVERYTHING;
  const head = HEAD.exec(source);
  if (head === null) return EVERYTHING;
  const rest = source.slice(head[0].length);
  if (rest.startsWith(")")) return NOTHING;
  if (rest.startsWith("{")) return pattern(rest);
  const name = new RegExp(`^(${WORD})\\s*(?:[,)]|=>)`, "u").exec(rest);
  if (name === null) return EVERYTHING;
  const members = membersOf(name[1]!, rest.slice(name[0].length));
  // `context.steps.a` is seen as `steps` alone: then all of it.
  return members === undefined ? EVERYTHING : { members, steps: undefined, loop: undefined, parent: undefined };
}

/** `{ input, steps: all, loop: { item } = {} }, …` */
function pattern(source: string): Reads {
  const members = new Map<string, string | undefined>(); // its name in the function; undefined: taken apart further
  let at = 1;
  for (;;) {
    const key = new RegExp(`^\\s*(?:(${WORD})\\s*|\\})`, "u").exec(source.slice(at));
    if (key === null) return EVERYTHING; // a rest, a computed key, a comment …
    at += key[0].length;
    if (key[1] === undefined) break;
    let local: string | undefined = key[1];
    if (source[at] === ":") {
      const renamed = new RegExp(`^:\\s*(${WORD})\\s*(?=[,}=])`, "u").exec(source.slice(at));
      local = renamed?.[1];
    }
    members.set(key[1], local);
    const end = endOfEntry(source, at);
    if (end === undefined) return EVERYTHING;
    at = source[end] === "," ? end + 1 : end;
  }
  const body = source.slice(at);
  const part = (member: string): ReadonlySet<string> | undefined => {
    if (!members.has(member)) return new Set();
    const local = members.get(member);
    return local === undefined ? undefined : membersOf(local, body);
  };
  const loop = part("loop");
  return { members: new Set(members.keys()), steps: part("steps"), loop, parent: loop === undefined ? undefined : parentsOf(body) };
}

/** The members of `.parent` that the text uses, whosever it is. */
function parentsOf(text: string): Set<string> | undefined {
  const members = new Set<string>();
  for (const match of text.matchAll(new RegExp(`\\.\\s*parent(?![\\p{ID_Continue}$])(?=(?:\\s*\\??\\.\\s*(${WORD}))?)`, "gu"))) {
    if (match[1] === undefined) return undefined;
    members.add(match[1]);
  }
  return members;
}

/** Where the entry of a pattern ends: at its comma or at the closing brace. Anything with quotes is not understood. */
function endOfEntry(source: string, from: number): number | undefined {
  let depth = 0;
  for (let at = from; at < source.length; at++) {
    const char = source[at]!;
    if ("\"'`/".includes(char)) return undefined;
    if ("{[(".includes(char)) depth++;
    else if (depth === 0 && (char === "," || char === "}")) return at;
    else if ("}])".includes(char)) depth--;
  }
  return undefined;
}

/** The members of `name` that the text uses, if it uses nothing else of it. */
function membersOf(name: string, text: string): Set<string> | undefined {
  const members = new Set<string>();
  const word = name.replaceAll("$", "\\$");
  const use = new RegExp(`(?<![\\p{ID_Continue}$.])${word}(?![\\p{ID_Continue}$])(?:\\s*\\??\\.\\s*(${WORD}))?`, "gu");
  for (const match of text.matchAll(use)) {
    if (match[1] === undefined) return undefined;
    members.add(match[1]);
  }
  // `...name`: the dots before it hide it from the look-behind above.
  return new RegExp(`\\.\\.\\.\\s*${word}(?![\\p{ID_Continue}$])`, "u").test(text) ? undefined : members;
}
