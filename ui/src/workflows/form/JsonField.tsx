/* JsonField.tsx: a value that no control fits, as JSON. */
import type { FallbackFieldProps } from "@rjsf/utils";
import { useState } from "react";
import { writeJson } from "../../api/json";
import type { Json } from "../../api/types";
import { parseJson } from "../../parts/json";
import { fromForm, toForm } from "./numbers";

/** While what is typed is no JSON, the value stays what it was, and BAD_JSON finds the field. */
export const BAD_JSON = "textarea[data-bad-json]";

export function JsonField({ fieldPathId, formData, onChange, required, disabled, readonly }: FallbackFieldProps) {
  const id = fieldPathId.$id;
  const [text, setText] = useState(() => (formData === undefined ? "" : writeJson(fromForm(formData as Json), 2)));
  const parsed = parseJson(text);
  const bad = "error" in parsed ? parsed.error : "";

  function change(typed: string) {
    setText(typed);
    const result = parseJson(typed);
    if (!("error" in result)) onChange(result.value === undefined ? undefined : toForm(result.value), fieldPathId.path);
  }
  return (
    <>
      <textarea
        id={id}
        className="mono"
        rows={2}
        value={text}
        spellCheck={false}
        required={required}
        disabled={disabled}
        readOnly={readonly}
        placeholder='JSON: "text", 42, { }, [ ] …'
        data-bad-json={bad ? "" : undefined}
        aria-invalid={bad !== ""}
        aria-describedby={`${id}__json`}
        onChange={(event) => change(event.target.value)}
      />
      <div id={`${id}__json`} role="alert" className="field-error">
        {bad}
      </div>
    </>
  );
}
