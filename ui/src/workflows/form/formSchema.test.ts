import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../api/types";
import { formSchemaOf } from "./formSchema";

const ANY = { $comment: "any JSON" };
const part = (schema: JsonSchema) => (formSchemaOf({ type: "object", properties: { part: schema } }) as { properties: { part: unknown } }).properties.part;

describe("the schema of the form", () => {
  it("keeps a place for any JSON", () => {
    expect(part({})).toEqual(ANY);
    expect(part(true)).toEqual(ANY);
    expect(part({ type: "array", items: {} })).toEqual({ type: "array", items: ANY });
    expect(formSchemaOf({ $ref: "#/$defs/any", $defs: { any: {} } })).toEqual({ $ref: "#/$defs/any", $defs: { any: ANY } });
  });
  it("takes any JSON where no control fits", () => {
    expect(part({ type: "object", title: "Labels", default: { a: 1 } })).toEqual({ ...ANY, title: "Labels", default: { a: 1 } });
    expect(part({ type: "object", additionalProperties: true })).toEqual(ANY);
    expect(part({ type: "array", description: "At most three", maxItems: 3 })).toEqual({ ...ANY, description: "At most three" });
    expect(part({ type: ["string", "integer"] })).toEqual(ANY);
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
