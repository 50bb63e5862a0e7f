import { describe, expect, it } from "vitest";
import { readJson } from "../../api/json";
import type { JsonObject, JsonSchema } from "../../api/types";
import { formSchemaOf } from "./formSchema";
import { uiSchemaOf } from "./uiSchema";

const namesOf = (values: string) =>
  uiSchemaOf(formSchemaOf({ enum: readJson(values) as JsonObject[] } as JsonSchema))["ui:enumNames"] as unknown;

describe("the names of values to choose from", () => {
  it("are the values, to the digit", () => {
    expect(namesOf('["red","green"]')).toEqual(["red", "green"]);
    expect(namesOf("[1.10,2,12345678901234567890,null,true]")).toEqual([
      "1.10",
      "2",
      "12345678901234567890",
      "null",
      "true",
    ]);
  });
  it("tell values of different types apart", () => {
    expect(namesOf('[1,"1","one"]')).toEqual(["1", '"1"', "one"]);
    expect(namesOf('["","null",null,{"a":1}]')).toEqual(['""', '"null"', "null", '{"a":1}']);
  });
});
