/* formSchema.ts: the input schema as the form is made from it.
 *
 * Not every schema describes a control: any JSON, one of several types, an object or a list of which nothing
 * is said. Of such a part no more is left here than what describes it, and the form shows a part of no known
 * type as a field for JSON (JsonField.tsx). The server judges by the schema as it is. */
import type { JsonText } from "../../api/client";
import { isLosslessNumber, isObject } from "../../api/json";
import type { Json, JsonObject, JsonSchema } from "../../api/types";
import { toForm } from "./numbers";

const MAPS = ["properties", "patternProperties", "$defs", "definitions"];
const LISTS = ["oneOf", "anyOf", "prefixItems"];
const ONES = ["items", "additionalProperties"];
/** Whatever says what is in an object, or in a list. */
const TELLS: Record<string, string[]> = {
  object: [
    "properties",
    "additionalProperties",
    "patternProperties",
    "oneOf",
    "anyOf",
    "allOf",
    "$ref",
    "if",
    "dependentSchemas",
    "enum",
    "const",
  ],
  array: ["items", "prefixItems", "oneOf", "anyOf", "allOf", "$ref", "if", "enum", "const"],
};

const DESCRIBES = ["title", "description", "default"];
/** Keys under which there is data, not a schema. */
const DATA = ["default", "const", "enum", "examples"];

export function formSchemaOf(schema: JsonSchema): JsonSchema {
  return shapeOf(withNumbers(schema) as JsonSchema);
}

/** Its data as the form has it; a limit as near as a double comes. */
function withNumbers(schema: Json): Json {
  if (isLosslessNumber(schema)) return Number(schema.value);
  if (Array.isArray(schema)) return schema.map(withNumbers);
  if (!isObject(schema)) return schema;
  return mapValues(schema, (part, key) => {
    if (DATA.includes(key)) return toForm(part);
    return MAPS.includes(key) && isObject(part) ? mapValues(part, withNumbers) : withNumbers(part);
  });
}

function mapValues(object: JsonObject, map: (value: Json, key: string) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

function shapeOf(schema: JsonSchema): JsonSchema {
  if (schema === true) return anyJson({});
  if (!isObject(schema)) return schema;
  if (!hasControl(schema)) return anyJson(schema);
  const result: JsonObject = { ...schema };
  for (const key of MAPS) {
    const map = schema[key];
    if (isObject(map)) result[key] = mapValues(map, (part) => shapeOf(part as JsonSchema));
  }
  for (const key of LISTS) {
    const list = schema[key];
    if (Array.isArray(list)) result[key] = list.map((part) => shapeOf(part as JsonSchema));
  }
  for (const key of ONES) {
    const part = schema[key];
    if (isObject(part) || part === true) result[key] = shapeOf(part);
  }
  return result;
}

/** Never empty: the library leaves out what is. */
function anyJson(schema: JsonObject): JsonObject {
  return {
    $comment: "any JSON",
    ...Object.fromEntries(Object.entries(schema).filter(([key]) => DESCRIBES.includes(key))),
  };
}

function hasControl(schema: JsonObject): boolean {
  if (Object.keys(schema).length === 0) return false;
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== "null");
  if (types.length > 1) return schema.enum !== undefined;
  const tells = TELLS[String(types[0])];
  return !tells || tells.some((key) => schema[key] !== undefined && schema[key] !== true);
}

/** A schema from which a form can be made: of an object with properties, or of one value, which needs a name. */
export function formSchema(schema: JsonSchema | null | undefined, title = "Input"): JsonObject | null {
  if (!schema || typeof schema !== "object") return null;
  if (isOneValue(schema)) return { title, ...(formSchemaOf(schema) as JsonObject) };
  const told = schema.properties ?? schema.oneOf ?? schema.anyOf ?? schema.allOf ?? schema.$ref;
  return (schema.type ?? "object") === "object" && told !== undefined ? (formSchemaOf(schema) as JsonObject) : null;
}

export const isOneValue = (schema: JsonObject | null) => typeof schema?.type === "string" && schema.type !== "object";

/** What a form of one value stands for while nobody has touched it. To send nothing would mean an empty object. */
const UNTOUCHED: Record<string, JsonText> = { string: '""', array: "[]", boolean: "false" };
export const untouched = (schema: JsonObject | null): JsonText | undefined =>
  isOneValue(schema) ? (UNTOUCHED[String(schema?.type)] ?? "null") : undefined;
