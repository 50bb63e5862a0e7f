import { useEffect } from "react";

/** The document's title: what the page is about, then whose it is. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Rival` : "Rival";
  }, [title]);
}
