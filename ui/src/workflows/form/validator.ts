/* validator.ts: what the form needs a validator for: to find which alternative of a oneOf the data fits.
 *
 * Whether an input is good is for the server alone to say: it has the last word anyway, and a second
 * opinion would only differ. Not ajv: it compiles schemas with eval, which the page's policy forbids. */
import { Validator, type Schema } from "@cfworker/json-schema";
import type { RJSFSchema, ValidatorType } from "@rjsf/utils";
import type { Json } from "../../api/types";
import { rounded } from "./numbers";

export const validator: ValidatorType = {
  isValid(schema, data, root) {
    try {
      const whole = { ...(root as RJSFSchema), ...schema } as Json; // $ref looks into the root's $defs
      return new Validator(rounded(whole) as Schema, "2020-12").validate(rounded((data ?? null) as Json)).valid;
    } catch {
      return false; // a schema it cannot read fits nothing
    }
  },
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  rawValidation: () => ({ errors: [] }),
};
