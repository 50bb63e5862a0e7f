/* time.ts: times and durations as people say them. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** 850 ms · 3.2 s · 42 s · 3 min 20 s · 2 h 5 min · 4 d 3 h: two units at most. */
export function formatDuration(ms: number): string {
  const d = Math.max(0, Math.round(ms));
  if (d < SECOND) return `${d} ms`;
  if (d < 10 * SECOND) return `${(Math.floor(d / 100) / 10).toFixed(1)} s`;
  if (d < MINUTE) return `${Math.floor(d / SECOND)} s`;
  const two = (big: number, bigName: string, small: number, smallName: string) => {
    const rest = Math.floor((d % big) / small);
    return `${Math.floor(d / big)} ${bigName}${rest > 0 ? ` ${rest} ${smallName}` : ""}`;
  };
  if (d < HOUR) return two(MINUTE, "min", SECOND, "s");
  if (d < DAY) return two(HOUR, "h", MINUTE, "min");
  return two(DAY, "d", HOUR, "h");
}

/** "just now", "3 min ago", "in 2 h". */
export function formatRelative(at: number, now: number): string {
  const away = Math.abs(at - now);
  if (away < 5 * SECOND) return at <= now ? "just now" : "in a moment";
  const [unit, name] =
    away < MINUTE ? [SECOND, "s"] : away < HOUR ? [MINUTE, "min"] : away < DAY ? [HOUR, "h"] : ([DAY, "d"] as const);
  const text = `${Math.floor(away / (unit as number))} ${name}`;
  return at <= now ? `${text} ago` : `in ${text}`;
}

const ABSOLUTE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hour12: false,
});

const DAY_NAME = new Intl.DateTimeFormat(undefined, {
  weekday: "long",
  year: "numeric",
  month: "long",
  day: "numeric",
});

/** Monday, November 16, 2026 */
export function formatDay(at: number): string {
  return DAY_NAME.format(at);
}

export function formatAbsolute(at: number): string {
  return ABSOLUTE.format(at);
}

/** 14:03:22.117 */
export function formatClock(at: number): string {
  return CLOCK.format(at);
}

/** "15m", "24h", "7d" as milliseconds; undefined for anything else. */
export function parseSpan(text: string): number | undefined {
  const match = /^(\d{1,4})([mhd])$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * { m: MINUTE, h: HOUR, d: DAY }[match[2] as "m" | "h" | "d"];
}
