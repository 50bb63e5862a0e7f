/* Tabs.tsx: the parts of a page, each with its own address. Links in a nav: the browser's back, middle
 * click and the screen reader's list of links all work without further ado. */
import { useLayoutEffect, useRef } from "react";
import { Link } from "wouter";

export interface Tab {
  id: string;
  name: string;
  href: string;
  count?: number;
}

export function Tabs({ tabs, current, label }: { tabs: Tab[]; current: string; label: string }) {
  const nav = useRef<HTMLElement>(null);
  /* On a phone they do not all fit: the current one is in the middle, as far as there is something on both sides. */
  useLayoutEffect(() => {
    const link = nav.current?.querySelector("[aria-current]")?.getBoundingClientRect();
    const all = nav.current?.getBoundingClientRect();
    if (link && all) nav.current!.scrollLeft += link.left - all.left - (all.width - link.width) / 2;
  }, [current, tabs.length]);
  return (
    <nav ref={nav} className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.id} href={tab.href} aria-current={tab.id === current ? "page" : undefined}>
          {tab.name}
          {tab.count !== undefined && <span className="tab-count">{tab.count.toLocaleString("en")}</span>}
        </Link>
      ))}
    </nav>
  );
}
