import { expect, test } from "vitest";
import { BREAK_PX, idleIn, scaleOf, ticksOf } from "./scale";

const DAY = 86_400_000;

test("idle is what no work covers, also where works overlap", () => {
  expect(
    idleIn({ from: 0, to: 100 }, [
      { from: 60, to: 70 },
      { from: 10, to: 30 },
      { from: 20, to: 25 },
    ]),
  ).toEqual([
    { from: 0, to: 10 },
    { from: 30, to: 60 },
    { from: 70, to: 100 },
  ]);
  expect(idleIn({ from: 0, to: 10 }, [{ from: -5, to: 20 }])).toEqual([]);
});

test("without idle time the scale is straight", () => {
  const scale = scaleOf({ from: 1000, to: 2000 }, 500);
  expect(scale.x(1000)).toBe(0);
  expect(scale.x(1500)).toBeCloseTo(250);
  expect(scale.x(9999)).toBe(500);
});

test("two days of sleep between two seconds of work are a break, and the work is seen", () => {
  const whole = { from: 0, to: 2 * DAY + 2000 };
  const scale = scaleOf(whole, 1000, [{ from: 1000, to: 2 * DAY + 1000 }]);
  expect(scale.stretches.map((stretch) => stretch.broken)).toEqual([false, true, false]);
  expect(scale.x(1000)).toBeCloseTo((1000 - BREAK_PX) / 2);
  expect(scale.x(2 * DAY + 1000) - scale.x(1000)).toBeCloseTo(BREAK_PX);
  expect(scale.x(whole.to)).toBeCloseTo(1000);
});

test("the order of times is kept, whatever is pressed", () => {
  const idle = Array.from({ length: 40 }, (_, i) => ({ from: i * 10_000 + 2000, to: i * 10_000 + 9000 }));
  const scale = scaleOf({ from: 0, to: 400_000 }, 900, idle);
  let before = -1;
  for (let time = 0; time <= 400_000; time += 700) {
    const x = scale.x(time);
    expect(x).toBeGreaterThanOrEqual(before);
    before = x;
  }
  expect(before).toBeLessThanOrEqual(900);
});

test("an hour is pressed beside a day: what counts is what is left of the time", () => {
  const scale = scaleOf({ from: 0, to: DAY + 3_610_000 }, 1000, [
    { from: 1000, to: DAY },
    { from: DAY + 5000, to: DAY + 3_605_000 },
  ]);
  expect(scale.stretches.filter((stretch) => stretch.broken)).toHaveLength(2);
});

test("short pauses stay as they are", () => {
  expect(scaleOf({ from: 0, to: 1000 }, 1000, [{ from: 100, to: 120 }]).stretches).toHaveLength(1);
});

test("ticks are round, apart, and begin anew behind a break", () => {
  const plain = ticksOf(scaleOf({ from: 5000, to: 15_000 }, 1000), 80).map((tick) => tick.time);
  expect(plain.slice(0, 3)).toEqual([0, 1000, 2000]);
  const broken = ticksOf(scaleOf({ from: 0, to: DAY + 2000 }, 1000, [{ from: 1000, to: DAY + 1000 }]), 80);
  expect(broken.some((tick) => tick.time === DAY + 1000)).toBe(true);
  for (let i = 1; i < broken.length; i++) expect(broken[i]!.x - broken[i - 1]!.x).toBeGreaterThan(50);
});
