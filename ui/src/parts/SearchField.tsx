import { useRef } from "react";
import { useShortcuts } from "../app/shortcuts";
import { Icon } from "./Icon";

/** A field to search with; the key / goes there. */
export function SearchField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  useShortcuts({ "/": () => input.current?.focus() });
  return (
    <div className="search" role="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </div>
  );
}
