/**
 * hooks.ts: how Node loads workflow files. Runs in Node's own thread for module hooks (`module.register`).
 *
 * 1. A relative import without an ending (`./steps/tree-steps`), or with that of the compiled file (`./x.js` for x.ts),
 *    finds the TypeScript file.
 * 2. Types are removed by esbuild, with a source map, so that stacks show the lines of the file.
 * 3. `rival` and `zod` are found even where the file's own folder has no packages: those of this package are taken.
 *
 * Nothing that Node finds by itself is changed. Files below node_modules are left alone.
 */
import { access, readFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transform, type TransformOptions } from "esbuild";

interface Context {
  parentURL?: string;
  conditions: string[];
  importAttributes: Record<string, string>;
}
interface Resolved {
  url: string;
  format?: string | null;
  shortCircuit?: boolean;
}
type NextResolve = (specifier: string, context: Context) => Promise<Resolved>;
interface Loaded {
  format: string;
  source?: string | ArrayBuffer | Uint8Array | null;
  shortCircuit?: boolean;
}
type NextLoad = (url: string, context: { format?: string }) => Promise<Loaded>;

const TYPESCRIPT = /\.(?:ts|mts|tsx)$/;
const TRIED = [".ts", ".mts", ".tsx", ".js", ".mjs", "/index.ts", "/index.mts", "/index.js", "/index.mjs"];
const OURS = ["rival", "zod"];

export async function resolve(specifier: string, context: Context, next: NextResolve): Promise<Resolved> {
  try {
    return await next(specifier, context);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "ERR_UNSUPPORTED_DIR_IMPORT") throw error;
    const found = isPath(specifier)
      ? await findFile(new URL(specifier, context.parentURL ?? pathToFileURL(`${process.cwd()}/`)))
      : await findOurs(specifier, context, next);
    if (found === undefined) throw error;
    return found;
  }
}

function isPath(specifier: string): boolean {
  return /^(?:\.{0,2}\/|file:)/.test(specifier);
}

async function findFile(url: URL): Promise<Resolved | undefined> {
  if (url.protocol !== "file:") return undefined;
  const asWritten = url.href.replace(/[?#].*$/, "");
  const compiled = /^(.*)\.(m?)js$/.exec(asWritten);
  const candidates = compiled === null ? TRIED.map((end) => asWritten + end) : [`${compiled[1]!}.${compiled[2]!}ts`];
  for (const candidate of candidates) {
    try {
      await access(fileURLToPath(candidate));
      return { url: candidate, shortCircuit: true };
    } catch {
      // the next one
    }
  }
  return undefined;
}

/** From this package, as if it had been imported here. */
async function findOurs(specifier: string, context: Context, next: NextResolve): Promise<Resolved | undefined> {
  if (!OURS.some((name) => specifier === name || specifier.startsWith(`${name}/`))) return undefined;
  try {
    return await next(specifier, { ...context, parentURL: import.meta.url });
  } catch {
    return undefined;
  }
}

export async function load(url: string, context: { format?: string }, next: NextLoad): Promise<Loaded> {
  if (!url.startsWith("file:") || !TYPESCRIPT.test(url.replace(/[?#].*$/, "")) || url.includes("/node_modules/"))
    return next(url, context);
  const file = fileURLToPath(url);
  const { code } = await transform(await readFile(file, "utf8"), stripOptions(file));
  return { format: "module", source: code, shortCircuit: true };
}

/** How esbuild removes the types of a file. */
export function stripOptions(file: string): TransformOptions {
  return {
    loader: file.endsWith(".tsx") ? "tsx" : TYPESCRIPT.test(file) ? "ts" : "js",
    format: "esm",
    target: "node20",
    sourcefile: file,
    sourcemap: "inline",
    sourcesContent: false,
    // Without this a tsconfig.json that esbuild finds beside the file would decide what it means.
    tsconfigRaw: { compilerOptions: {} },
    logLevel: "silent", // what is wrong is thrown
  };
}
