/* scale.ts: from times to places on the timeline, and back.
 *
 * Straight, or with the stretches in which nothing works pressed to a few pixels: a run that sleeps for
 * two days between two seconds of work shows its work. */
export interface Span {
  from: number;
  to: number;
}

interface Stretch extends Span {
  x: number;
  width: number;
  /** idle, and pressed */
  broken: boolean;
}

export interface Scale {
  width: number;
  stretches: Stretch[];
  x: (time: number) => number;
}

export const BREAK_PX = 44;
/** Idle time is pressed when it is long, and more than this share of what is not pressed yet … */
const IDLE_MS = 1000;
const IDLE_SHARE = 0.08;
/** … the longest so many of them … */
const BREAKS = 12;
/** … and never to more than this share of the width. */
const BREAKS_SHARE = 0.5;

/** Those worth a break, in order. */
function breaksIn(total: number, width: number, idle: Span[]): Span[] {
  const most = Math.min(BREAKS, Math.floor((width * BREAKS_SHARE) / BREAK_PX));
  const breaks: Span[] = [];
  let rest = total;
  for (const span of [...idle].sort((a, b) => b.to - b.from - (a.to - a.from))) {
    const ms = span.to - span.from;
    if (breaks.length === most || ms < IDLE_MS || ms < rest * IDLE_SHARE || (ms / rest) * width < BREAK_PX) break;
    breaks.push(span);
    rest -= ms;
  }
  return breaks.sort((a, b) => a.from - b.from);
}

/** What is not covered by any of the spans. One sort. */
export function idleIn(whole: Span, busy: Span[]): Span[] {
  const idle: Span[] = [];
  let at = whole.from;
  for (const span of [...busy].sort((a, b) => a.from - b.from)) {
    if (span.from > at) idle.push({ from: at, to: Math.min(span.from, whole.to) });
    at = Math.max(at, span.to);
    if (at >= whole.to) break;
  }
  if (at < whole.to) idle.push({ from: at, to: whole.to });
  return idle;
}

export function scaleOf(whole: Span, width: number, idle: Span[] = []): Scale {
  const total = Math.max(1, whole.to - whole.from);
  const worth = breaksIn(total, width, idle);
  const pressed = worth.reduce((sum, span) => sum + span.to - span.from, 0);
  const perMs = (width - worth.length * BREAK_PX) / Math.max(1, total - pressed);

  const stretches: Stretch[] = [];
  let x = 0;
  let at = whole.from;
  const add = (to: number, broken: boolean) => {
    if (to <= at) return;
    const wide = broken ? BREAK_PX : (to - at) * perMs;
    stretches.push({ from: at, to, x, width: wide, broken });
    x += wide;
    at = to;
  };
  for (const span of worth) {
    add(span.from, false);
    add(span.to, true);
  }
  add(Math.max(whole.to, whole.from + 1), false);
  return {
    width,
    stretches,
    x(time) {
      const first = stretches[0]!;
      if (time <= first.from) return 0;
      let low = 0;
      let high = stretches.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (time > stretches[middle]!.to) low = middle + 1;
        else high = middle;
      }
      const in_ = stretches[low]!;
      return Math.min(width, in_.x + (Math.min(time, in_.to) - in_.from) * (in_.width / (in_.to - in_.from)));
    },
  };
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3,
  7200e3, 21600e3, 43200e3, 86400e3,
];
const DAY = 86_400_000;

/** Round times since the start, not nearer to each other than `apart` pixels; after a break its end first. */
export function ticksOf(scale: Scale, apart: number): { time: number; x: number }[] {
  const start = scale.stretches[0]!.from;
  const plain = scale.stretches.find((stretch) => !stretch.broken);
  if (!plain) return [];
  const least = apart * ((plain.to - plain.from) / plain.width);
  const step = STEPS.find((each) => each >= least) ?? Math.ceil(least / DAY) * DAY;
  const ticks: { time: number; x: number }[] = [];
  const add = (time: number, first = false) => {
    const x = scale.x(time);
    const near = () => ticks.length > 0 && x - ticks.at(-1)!.x < apart * 0.75;
    if (first) while (near()) ticks.pop();
    if (near() || x > scale.width - apart / 4) return;
    ticks.push({ time: time - start, x });
  };
  scale.stretches.forEach((stretch, i) => {
    if (stretch.broken) return;
    if (i > 0) add(stretch.from, true);
    for (let n = Math.ceil((stretch.from - start) / step); start + n * step <= stretch.to; n++) add(start + n * step);
  });
  return ticks;
}
