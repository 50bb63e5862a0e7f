/* ErrorBlock.tsx: what went wrong. Its last line is the title, the whole text is below, as it was written. */
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";
import { CopyButton } from "./CopyButton";
import { lastLine } from "./lastLine";

interface Props {
  /** The small heading above it, and its accessible name, unless that is another one. */
  label: string;
  name?: string;
  text: string;
  /** Where it happened, and the way there. */
  where?: ReactNode;
  children?: ReactNode;
  tone?: "failed" | "suspended" | "past";
}

export function ErrorBlock({ label, name = label, text, where, children, tone = "failed" }: Props) {
  const box = useRef<HTMLPreElement>(null);
  const [open, setOpen] = useState(false);
  const [isCut, setCut] = useState(false);
  const title = lastLine(text);
  const isLong = text.trim() !== title;
  // What is cut depends on the width, too.
  useLayoutEffect(() => {
    const pre = box.current;
    if (!pre || open) return;
    const look = () => setCut(pre.clientHeight === 0 || pre.scrollHeight > pre.clientHeight + 1);
    const watcher = new ResizeObserver(look);
    watcher.observe(pre);
    watcher.observe(document.documentElement);
    look();
    return () => watcher.disconnect();
  }, [open, text]);
  // The end is what matters.
  useLayoutEffect(() => {
    if (box.current && !open) box.current.scrollTop = box.current.scrollHeight;
  }, [open, text]);
  return (
    <section className={`error-block ${tone}`} role="group" aria-label={name}>
      <div className="error-head">
        <span>{label}</span>
        {where}
        <CopyButton text={text} what="the message" />
      </div>
      <p className="error-title">{title}</p>
      {children}
      {isLong && (
        <>
          <pre ref={box} className={open ? "error-text open" : "error-text"} tabIndex={isCut && !open ? 0 : undefined}>
            {text}
          </pre>
          {(isCut || open) && (
            <button className="button quiet small" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "Show less" : "Show all"}
            </button>
          )}
        </>
      )}
    </section>
  );
}
