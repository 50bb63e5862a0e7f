/* Shell.tsx: what is around every page: skip link, header, connection banner, shortcuts. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import { Icon } from "../parts/Icon";
import { Mark } from "../parts/Mark";
import { Toasts } from "../parts/toast";
import "./app.css";
import { useConnection } from "./connection";
import { ConnectionBanner } from "./ConnectionBanner";
import { cameBack } from "./navigation";
import { useSession } from "./session";
import { ShortcutsDialog, useShortcuts } from "./shortcuts";
import { setTheme, THEMES, useTheme } from "./theme";

const PLACES = [
  { href: "/", name: "Home", icon: "clock" },
  { href: "/workflows", name: "Workflows", icon: "workflow" },
  { href: "/runs", name: "Runs", icon: "list" },
] as const;

export function Shell({ children }: { children: ReactNode }) {
  const [location, navigate] = useLocation();
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const connection = useConnection();

  useShortcuts({
    "?": () => setHelp(true),
    "g h": () => navigate("/"),
    "g w": () => navigate("/workflows"),
    "g r": () => navigate("/runs"),
  });

  // A new page begins at its top, one that was come back to where it was left, and is announced by its heading.
  const page = location.split("/").slice(0, 3).join("/");
  const before = useRef(page);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    if (!cameBack()) window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [page]);

  return (
    <>
      <a className="skip-link" href="#main" onClick={() => main.current?.focus()}>
        Skip to the content
      </a>
      <header className="shell-header">
        <Link href="/" className="shell-brand" aria-label="Rival, home">
          <Mark size={26} />
          <span>Rival</span>
        </Link>
        <nav aria-label="Main" className="shell-nav">
          {PLACES.map((place) => (
            <Link
              key={place.href}
              href={place.href}
              aria-current={
                (place.href === "/" ? location === "/" : location.startsWith(place.href)) ? "page" : undefined
              }
            >
              <Icon name={place.icon} />
              {place.name}
            </Link>
          ))}
        </nav>
        <div className="shell-tools">
          <button
            className="button quiet icon-only"
            onClick={() => setHelp(true)}
            aria-label="Keyboard shortcuts"
            title="Keyboard shortcuts (?)"
          >
            <Icon name="keyboard" />
          </button>
          <ThemeButton />
          <SessionButton />
        </div>
      </header>
      <ConnectionBanner />
      <main id="main" ref={main} tabIndex={-1} className="shell-main" data-feed={connection}>
        {children}
      </main>
      <ShortcutsDialog open={help} onClose={() => setHelp(false)} />
      <Toasts />
    </>
  );
}

const THEME_LABEL = { system: "as the system", light: "light", dark: "dark" } as const;
const THEME_ICON = { system: "system", light: "sun", dark: "moon" } as const;

function ThemeButton() {
  const theme = useTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
  return (
    <button
      className="button quiet icon-only"
      onClick={() => setTheme(next)}
      aria-label={`Colours: ${THEME_LABEL[theme]}. Change to ${THEME_LABEL[next]}`}
      title={`Colours: ${THEME_LABEL[theme]}`}
    >
      <Icon name={THEME_ICON[theme]} />
    </button>
  );
}

function SessionButton() {
  const session = useSession();
  const queries = useQueryClient();
  if (!session.authRequired) return null;
  async function leave() {
    await api.logout().catch(() => undefined); // gone already is as good
    queries.setQueryData(["session"], { role: "none", authRequired: true });
    queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "session" });
  }
  return (
    <span className="shell-session">
      <span className="muted shell-role" title="What this session may do">
        {session.role}
      </span>
      <button className="button quiet" onClick={() => void leave()}>
        Log out
      </button>
    </span>
  );
}
