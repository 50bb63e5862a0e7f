/* api-types.mjs: the documents of the HTTP API as TypeScript, from the server's own description of them.
 *
 *   npm run api-types           asks RIVAL (../build/rival) for its /openapi.json, and writes src/api/generated.ts
 *
 * The schemas there use a handful of words; one that is not known here is an error, not a guess. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { format, resolveConfig } from "prettier";

const KNOWN = [
  "$ref",
  "additionalProperties",
  "const",
  "description",
  "enum",
  "format",
  "items",
  "maxLength",
  "maximum",
  "minLength",
  "minimum",
  "oneOf",
  "pattern",
  "properties",
  "required",
  "type",
];

/** The whole text of the file. */
export async function typesOf(openapi) {
  const schemas = Object.entries(openapi.components.schemas);
  const text = [
    "/* Made from the server's /openapi.json by scripts/api-types.mjs: do not edit, run `npm run api-types`. */",
    'import type { Json } from "./types";',
    "",
    ...schemas.map(([name, schema]) => declaration(name, schema)),
  ].join("\n");
  return format(text, { ...(await resolveConfig(import.meta.filename)), parser: "typescript" });
}

function declaration(name, schema) {
  const about = schema.description ? `/** ${schema.description} */\n` : "";
  const type = typeOf(schema, name);
  const isInterface = schema.type === "object" && type.startsWith("{");
  return `${about}export ${isInterface ? `interface ${name} ` : `type ${name} = `}${type}${isInterface ? "" : ";"}\n`;
}

function typeOf(schema, where) {
  if (schema === true) return "Json";
  for (const word of Object.keys(schema))
    if (!KNOWN.includes(word)) throw new Error(`${where}: what does "${word}" mean in TypeScript?`);
  if (schema.$ref) return schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
  if (schema.oneOf) return schema.oneOf.map((one) => typeOf(one, where)).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, where)).join(" | ");
  switch (schema.type) {
    case undefined:
      return "Json";
    case "null":
    case "string":
    case "boolean":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const item = typeOf(schema.items ?? {}, where);
      return item.includes(" ") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return objectOf(schema, where);
    default:
      throw new Error(`${where}: a type "${schema.type}"?`);
  }
}

function objectOf(schema, where) {
  const { properties, additionalProperties: more, required = [] } = schema;
  if (!properties) return `Record<string, ${more && more !== true ? typeOf(more, where) : "Json"}>`;
  const fields = Object.entries(properties).map(([name, field]) => {
    const about = field.description ? `  /** ${field.description} */\n` : "";
    return `${about}  ${name}${required.includes(name) ? "" : "?"}: ${typeOf(field, `${where}.${name}`)};`;
  });
  return `{\n${fields.join("\n")}\n}`;
}

/** As a server tells it that has nothing to serve. */
async function ask(rival) {
  const folder = mkdtempSync(path.join(tmpdir(), "rival-types-"));
  writeFileSync(path.join(folder, "a.yaml"), "name: a\nsteps: [{ a: { value: 1 } }]\n");
  const server = spawn(rival, ["serve", folder, "--listen", "127.0.0.1:0", "--store", path.join(folder, "s.db")]);
  try {
    const url = await new Promise((resolve, reject) => {
      for (const stream of [server.stdout, server.stderr])
        createInterface({ input: stream }).on("line", (line) => {
          const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line);
          if (found) resolve(found[0]);
        });
      server.once("error", reject);
      server.once("exit", (code) => reject(new Error(`rival serve ended with ${code}`)));
    });
    return await (await fetch(`${url}/openapi.json`)).json();
  } finally {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const here = import.meta.dirname;
  const openapi = await ask(process.env.RIVAL ?? path.join(here, "../../build/rival"));
  writeFileSync(path.join(here, "../src/api/generated.ts"), await typesOf(openapi));
}
