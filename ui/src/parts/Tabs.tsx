/* Tabs.tsx: the parts of a page, each with its own address. Links in a nav: the browser's back, middle
 * click and the screen reader's list of links all work without further ado. */
import { Link } from "wouter";

export interface Tab {
  id: string;
  name: string;
  href: string;
  count?: number;
}

export function Tabs({ tabs, current, label }: { tabs: Tab[]; current: string; label: string }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.id} href={tab.href} aria-current={tab.id === current ? "page" : undefined}>
          {tab.name}
          {tab.count !== undefined && <span className="tab-count">{tab.count.toLocaleString("en")}</span>}
        </Link>
      ))}
    </nav>
  );
}
