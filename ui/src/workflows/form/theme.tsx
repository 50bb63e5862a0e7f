/* theme.tsx: how the generated form looks: our fields and buttons in the library's places. */
import type {
  ArrayFieldItemTemplateProps,
  ArrayFieldTemplateProps,
  FieldErrorProps,
  FieldTemplateProps,
  IconButtonProps,
  ObjectFieldTemplateProps,
  TemplatesType,
} from "@rjsf/utils";
import { errorId, getUiOptions } from "@rjsf/utils";
import { Icon, type IconName } from "../../parts/Icon";

function Field(props: FieldTemplateProps) {
  const {
    id,
    label,
    children,
    errors,
    description,
    hidden,
    required,
    displayLabel,
    registry,
    uiSchema,
    rawErrors,
    schema,
  } = props;
  const Wrap = registry.templates.WrapIfAdditionalTemplate;
  if (hidden) return <div hidden>{children}</div>;
  const checkbox = schema.type === "boolean" && getUiOptions(uiSchema).widget === undefined;
  return (
    <Wrap {...props}>
      <div className={`form-field${rawErrors?.length ? " has-error" : ""}`}>
        {displayLabel && !checkbox && (
          <label htmlFor={id}>
            {label}
            {required ? <span className="form-required">required</span> : null}
          </label>
        )}
        {displayLabel && !checkbox ? description : null}
        {children}
        {errors}
      </div>
    </Wrap>
  );
}

function FieldErrors({ errors, fieldPathId }: FieldErrorProps) {
  if (!errors || errors.length === 0) return null;
  return (
    <div id={errorId(fieldPathId)} className="field-error">
      {errors.map((error, i) => (
        <div key={i}>{error}</div>
      ))}
    </div>
  );
}

function ObjectFields({
  title,
  description,
  properties,
  fieldPathId,
  schema,
  onAddProperty,
  registry,
  uiSchema,
}: ObjectFieldTemplateProps) {
  const root = fieldPathId.path.length === 0;
  const fields = (
    <>
      {description && !root && <p className="hint">{description}</p>}
      {properties.map((property) => property.content)}
      {schema.additionalProperties !== undefined && schema.additionalProperties !== false && (
        <registry.templates.ButtonTemplates.AddButton
          onClick={onAddProperty}
          registry={registry}
          uiSchema={uiSchema}
          title="Add a value"
        />
      )}
    </>
  );
  if (root) return <div className="form-object">{fields}</div>;
  return (
    <fieldset className="form-object form-block" id={fieldPathId.$id}>
      {title && <legend>{title.replace(/-(\d+)$/, " $1")}</legend>}
      {fields}
    </fieldset>
  );
}

function ArrayFields({
  title,
  schema,
  required,
  items,
  canAdd,
  onAddClick,
  fieldPathId,
  registry,
  uiSchema,
  disabled,
}: ArrayFieldTemplateProps) {
  return (
    <fieldset className="form-block" id={fieldPathId.$id}>
      <legend>
        {title}
        {required ? <span className="form-required">required</span> : null}
      </legend>
      <div className="form-list">
        {schema.description && <p className="hint">{schema.description}</p>}
        {items}
        {canAdd && (
          <registry.templates.ButtonTemplates.AddButton
            onClick={onAddClick}
            disabled={disabled}
            registry={registry}
            uiSchema={uiSchema}
            title={`Add to ${title}`}
          />
        )}
      </div>
    </fieldset>
  );
}

function ArrayItem({ children, hasToolbar, buttonsProps, registry }: ArrayFieldItemTemplateProps) {
  const Buttons = registry.templates.ArrayFieldItemButtonsTemplate;
  return (
    <div className="form-item">
      <div className="form-item-value">{children}</div>
      {hasToolbar && (
        <div className="form-item-tools">
          <Buttons {...buttonsProps} />
        </div>
      )}
    </div>
  );
}

function iconButton(icon: IconName, label: string) {
  return function FormButton({ id, onClick, disabled }: IconButtonProps) {
    return (
      <button
        id={id}
        type="button"
        className="button quiet small icon-only"
        aria-label={label}
        title={label}
        onClick={onClick}
        disabled={disabled}
      >
        <Icon name={icon} size={14} />
      </button>
    );
  };
}

function AddButton({ id, onClick, disabled, title }: IconButtonProps) {
  return (
    <button id={id} type="button" className="button small form-add" onClick={onClick} disabled={disabled}>
      <Icon name="plus" size={12} /> {title ?? "Add"}
    </button>
  );
}

function Down(props: IconButtonProps) {
  return (
    <span className="flip">
      <Up {...props} label="Move down" />
    </span>
  );
}

function Up({ id, onClick, disabled, label = "Move up" }: IconButtonProps & { label?: string }) {
  return (
    <button
      id={id}
      type="button"
      className="button quiet small icon-only"
      aria-label={label}
      title={label}
      onClick={onClick}
      disabled={disabled}
    >
      <Icon name="up" size={14} />
    </button>
  );
}

export const templates: Partial<TemplatesType> = {
  FieldTemplate: Field,
  FieldErrorTemplate: FieldErrors,
  ObjectFieldTemplate: ObjectFields,
  ArrayFieldTemplate: ArrayFields,
  ArrayFieldItemTemplate: ArrayItem,
  DescriptionFieldTemplate: ({ id, description }) =>
    description ? (
      <p id={id} className="hint">
        {description}
      </p>
    ) : null,
  ButtonTemplates: {
    SubmitButton: () => null, // ours is below, with the other things to choose
    AddButton,
    CopyButton: iconButton("copy", "Copy"),
    MoveDownButton: Down,
    MoveUpButton: Up,
    RemoveButton: iconButton("trash", "Remove"),
    ClearButton: iconButton("close", "Clear"),
  },
};
