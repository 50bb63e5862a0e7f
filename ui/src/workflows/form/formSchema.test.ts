import { describe, expect, it } from "vitest";
import { readJson } from "../../api/json";
import type { JsonObject, JsonSchema } from "../../api/types";
import { formSchemaOf } from "./formSchema";
import { fromForm } from "./numbers";

const ANY = { $comment: "any JSON" };
const part = (schema: JsonSchema) =>
  (formSchemaOf({ type: "object", properties: { part: schema } }) as { properties: { part: unknown } }).properties.part;

describe("the schema of the form", () => {
  it("keeps a place for any JSON", () => {
    expect(part({})).toEqual(ANY);
    expect(part(true)).toEqual(ANY);
    expect(part({ type: "array", items: {} })).toEqual({ type: "array", items: ANY });
    expect(formSchemaOf({ $ref: "#/$defs/any", $defs: { any: {} } })).toEqual({
      $ref: "#/$defs/any",
      $defs: { any: ANY },
    });
  });
  it("takes any JSON where no control fits", () => {
    expect(part({ type: "object", title: "Labels", default: { a: 1 } })).toEqual({
      ...ANY,
      title: "Labels",
      default: { a: 1 },
    });
    expect(part({ type: "object", additionalProperties: true })).toEqual(ANY);
    expect(part({ type: "array", description: "At most three", maxItems: 3 })).toEqual({
      ...ANY,
      description: "At most three",
    });
    expect(part({ type: ["string", "integer"] })).toEqual(ANY);
  });
  it("has data as the form has it, and limits that can be compared", () => {
    const digits = "12345678901234567890";
    const numbers = readJson(
      `{"type":"number","default":${digits},"enum":[1.10,1],"minimum":1.0,"title":"N"}`,
    ) as JsonObject;
    const form = part(numbers) as JsonObject;
    expect(fromForm({ default: form.default!, enum: form.enum! })).toEqual({
      default: numbers.default,
      enum: numbers.enum,
    });
    expect([form.minimum, form.title]).toEqual([1, "N"]);
    // a property may be called what a key of schemas is called
    expect(formSchemaOf({ properties: { default: readJson('{"type":"number","maximum":2.0}') } })).toEqual({
      properties: { default: { type: "number", maximum: 2 } },
    });
  });
  it("leaves the rest as it is", () => {
    const schemas: JsonSchema[] = [
      { type: "string", default: {} },
      { type: ["string", "null"] },
      { type: "object", additionalProperties: { type: "string" } },
      { type: ["string", "integer"], enum: ["auto", 1] },
      { const: {} },
      false,
    ];
    for (const schema of schemas) expect(part(schema)).toEqual(schema);
  });
});
