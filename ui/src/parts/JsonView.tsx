/* JsonView.tsx: a JSON value as a tree that folds. What is folded is not rendered, and a long list is
 * shown a piece at a time, so a value of any size costs what is seen of it. */
import { useState, type ReactNode } from "react";
import { isContainer, writeJson, type LosslessNumber } from "../api/json";
import type { Json, JsonObject } from "../api/types";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";

const PIECE = 100;
/** A value with no more entries than this, over all levels, is shown whole; of a larger one two levels. */
const SMALL = 60;
const OPEN_LEVELS = 2;
const LONG_TEXT = 600;

export function JsonView({ value, label }: { value: Json | undefined; label: string }) {
  if (value === undefined) return <span className="muted">nothing</span>;
  return (
    <div className="json" role="group" aria-label={label}>
      <div className="json-copy">
        <CopyButton text={() => writeJson(value, 2)} what={label} />
      </div>
      <Value value={value} level={0} levels={entriesIn(value, SMALL) <= SMALL ? Infinity : OPEN_LEVELS} />
    </div>
  );
}

/** How many entries it has at all levels; counting stops once there are more than `most`. */
function entriesIn(value: Json, most: number): number {
  if (!isContainer(value)) return 0;
  let count = 0;
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    count += 1 + entriesIn(item, most - count);
    if (count > most) break;
  }
  return count;
}

interface ValueProps {
  value: Json;
  level: number;
  /** so many levels are open at first */
  levels: number;
  name?: ReactNode;
  last?: boolean;
}

function Value({ value, level, levels, name, last = true }: ValueProps) {
  const comma = last ? "" : ",";
  if (isContainer(value)) return <Container value={value} level={level} levels={levels} name={name} comma={comma} />;
  return (
    <div className="json-line">
      {name}
      <Scalar value={value} />
      {comma}
    </div>
  );
}

function Scalar({ value }: { value: null | boolean | number | LosslessNumber | string }) {
  const [whole, setWhole] = useState(false);
  const text = writeJson(value);
  if (typeof value !== "string")
    return (
      <span className={`json-${value === null ? "null" : typeof value === "boolean" ? "boolean" : "number"}`}>
        {text}
      </span>
    );
  if (text.length <= LONG_TEXT || whole) return <span className="json-string">{text}</span>;
  return (
    <span className="json-string">
      {text.slice(0, LONG_TEXT)}…{" "}
      <button className="link-button" onClick={() => setWhole(true)}>
        all {text.length.toLocaleString("en")} characters
      </button>
    </span>
  );
}

interface ContainerProps extends Omit<ValueProps, "value" | "last"> {
  value: Json[] | JsonObject;
  comma: string;
}

function Container({ value, level, levels, name, comma }: ContainerProps) {
  const list = Array.isArray(value);
  const size = list ? value.length : Object.keys(value).length;
  const [open, setOpen] = useState(level < levels && size <= PIECE);
  const [shown, setShown] = useState(PIECE);
  const [begin, end] = list ? ["[", "]"] : ["{", "}"];
  if (size === 0)
    return (
      <div className="json-line">
        {name}
        {begin + end + comma}
      </div>
    );
  const count = `${size.toLocaleString("en")} ${list ? (size === 1 ? "item" : "items") : size === 1 ? "key" : "keys"}`;
  const entries: [string, Json][] = !open
    ? []
    : list
      ? value.slice(0, shown).map((item, i) => [String(i), item])
      : Object.entries(value).slice(0, shown);
  return (
    <div>
      <div className="json-line">
        <button
          className={open ? "json-fold open" : "json-fold"}
          aria-expanded={open}
          aria-label={`${open ? "Fold" : "Unfold"} ${count}`}
          onClick={() => setOpen(!open)}
        >
          <Icon name="chevron" size={10} />
        </button>
        {name}
        {begin}
        {!open && (
          <>
            <span className="json-count"> {count} </span>
            {end + comma}
          </>
        )}
      </div>
      {open && (
        <>
          <div className="json-inner">
            {entries.map(([key, item], i) => (
              <Value
                key={key}
                value={item}
                level={level + 1}
                levels={levels}
                last={i === size - 1}
                name={list ? undefined : <span className="json-key">{JSON.stringify(key)}: </span>}
              />
            ))}
            {shown < size && (
              <button className="link-button" onClick={() => setShown(shown + PIECE)}>
                {(size - shown).toLocaleString("en")} more
              </button>
            )}
          </div>
          <div className="json-line">{end + comma}</div>
        </>
      )}
    </div>
  );
}
