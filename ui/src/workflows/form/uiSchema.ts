/* uiSchema.ts: which control suits a part of a schema, where the library's first choice does not. */
import type { UiSchema } from "@rjsf/utils";
import { isObject, writeJson } from "../../api/json";
import type { Json, JsonSchema } from "../../api/types";
import { fromForm } from "./numbers";

/** Texts that may be longer than this get several lines. */
const LONG_TEXT = 200;

/** What to call each of the values: a text as it is, unless another value looks the same; else JSON. */
function namesOf(values: Json[]): string[] {
  const json = values.map((value) => writeJson(fromForm(value)));
  const others = new Set(json.filter((_, i) => typeof fromForm(values[i]!) !== "string"));
  return values.map((value, i) => {
    const plain = fromForm(value);
    return typeof plain === "string" && plain !== "" && !others.has(plain) ? plain : json[i]!;
  });
}

/** $ref is not followed: what is behind it may contain itself. */
export function uiSchemaOf(schema: JsonSchema): UiSchema {
  if (!isObject(schema)) return {};
  const ui: UiSchema = {};
  if (
    schema.type === "string" &&
    schema.enum === undefined &&
    schema.format === undefined &&
    Number(schema.maxLength) > LONG_TEXT
  )
    ui["ui:widget"] = "textarea";
  if (Array.isArray(schema.enum)) ui["ui:enumNames"] = namesOf(schema.enum);
  const items = schema.items;
  if (schema.type === "array" && isObject(items)) {
    if (schema.uniqueItems === true && items.enum !== undefined) ui["ui:widget"] = "checkboxes";
    ui.items = uiSchemaOf(items);
  }
  if (isObject(schema.properties))
    for (const [name, part] of Object.entries(schema.properties)) if (isObject(part)) ui[name] = uiSchemaOf(part);
  return ui;
}
