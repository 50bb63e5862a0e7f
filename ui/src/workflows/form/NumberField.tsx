/* NumberField.tsx: a number, of as many digits as it is typed with. The browser's own field for numbers is not
 * used: it drops what no double holds, before anyone sees it. */
import type { FieldProps } from "@rjsf/utils";
import { useState } from "react";
import type { Json } from "../../api/types";
import { fromTyped, toTyped } from "./numbers";

export function NumberField(props: FieldProps) {
  const { registry, schema, uiSchema, onChange } = props;
  const formData = props.formData as Json | undefined;
  const StringField = registry.fields.StringField!;
  const [typed, setTyped] = useState("");
  if (registry.schemaUtils.isSelect(schema)) return <StringField {...props} />; // its values are the schema's
  return (
    <StringField
      {...props}
      uiSchema={{ ...uiSchema, "ui:inputType": "text" }}
      // "1." says no more than "1", and is what one types on the way to "1.5"
      formData={fromTyped(typed) === formData ? typed : toTyped(formData)}
      onChange={(value: string | undefined, ...rest) => {
        setTyped(value ?? "");
        onChange(fromTyped(value ?? ""), ...rest);
      }}
    />
  );
}
