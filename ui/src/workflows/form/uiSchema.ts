/* uiSchema.ts: which control suits a part of a schema, where the library's first choice does not. */
import type { UiSchema } from "@rjsf/utils";
import type { JsonSchema } from "../../api/types";
import { isObject } from "./formSchema";

/** Texts that may be longer than this get several lines. */
const LONG_TEXT = 200;

/** $ref is not followed: what is behind it may contain itself. */
export function uiSchemaOf(schema: JsonSchema): UiSchema {
  if (!isObject(schema)) return {};
  const ui: UiSchema = {};
  if (schema.type === "string" && schema.enum === undefined && schema.format === undefined && Number(schema.maxLength) > LONG_TEXT) ui["ui:widget"] = "textarea";
  const items = schema.items;
  if (schema.type === "array" && isObject(items)) {
    if (schema.uniqueItems === true && items.enum !== undefined) ui["ui:widget"] = "checkboxes";
    else ui.items = uiSchemaOf(items);
  }
  if (isObject(schema.properties)) for (const [name, part] of Object.entries(schema.properties)) if (isObject(part)) ui[name] = uiSchemaOf(part);
  return ui;
}
