/* SchemaFields.tsx: fields made from a schema, with what the server said about their values. No more than fields:
 * the form around them, and what sends it, are the caller's. */
import Form from "@rjsf/core/lib/components/Form.js"; // its index would drag in a test helper and ajv
import type { RJSFSchema } from "@rjsf/utils";
import { useMemo } from "react";
import type { Json, JsonObject, Violation } from "../../api/types";
import { Boundary } from "../../parts/Boundary";
import { JsonField } from "./JsonField";
import { NumberField } from "./NumberField";
import { templates } from "./theme";
import { uiSchemaOf } from "./uiSchema";
import { validator } from "./validator";
import { errorTree } from "./violations";

const FIELDS = { FallbackField: JsonField, NumberField };

interface Props {
  /** as formSchema() makes it */
  schema: JsonObject;
  /** as toForm() makes it */
  data: Json | undefined;
  /** `typed`: by somebody; else the form has filled in what is there by default */
  onChange: (data: Json, typed: boolean) => void;
  violations: readonly Violation[];
  /** of the ids of the fields; "root" is the page's */
  idPrefix: string;
}

export function SchemaFields({ schema, data, onChange, violations, idPrefix }: Props) {
  const uiSchema = useMemo(() => uiSchemaOf(schema), [schema]);
  return (
    <Boundary fallback={() => <p className="hint">No form can be made from this schema. Give the value as JSON.</p>}>
      <Form
        tagName="div"
        className="generated"
        idPrefix={idPrefix}
        schema={schema as RJSFSchema}
        uiSchema={uiSchema}
        validator={validator}
        templates={templates}
        fields={FIELDS}
        formData={data}
        noValidate
        noHtml5Validate
        showErrorList={false}
        extraErrors={errorTree(violations)}
        onChange={(event, id) => onChange(event.formData as Json, id !== undefined)}
      />
    </Boundary>
  );
}
