import { expect, test } from "vitest";
import type { LogLine, Logs } from "../../api/types";
import { LogReader } from "./LogReader";

const PAGE = 2;

/** A log that grows; `before` happens before each answer. */
function logOf(count: number, before: (asked: number) => void = () => undefined) {
  const log = { count, asked: 0 };
  const load = async (after = 0): Promise<Logs> => {
    const ids = Array.from({ length: Math.max(0, Math.min(PAGE, log.count - after)) }, (_, i) => after + i + 1);
    await Promise.resolve();
    before(++log.asked);
    return { logs: ids.map((id) => ({ id }) as LogLine), next: after + ids.length };
  };
  return { log, reader: new LogReader(load, PAGE) };
}
const ids = (reader: LogReader) => reader.lines.map((line) => line.id);

test("a page is read when it is asked for, and no more", async () => {
  const { reader } = logOf(5);
  await reader.read(false);
  expect(ids(reader)).toEqual([1, 2]);
  expect(reader.more).toBe(true);
  await reader.read(false);
  expect(ids(reader)).toEqual([1, 2, 3, 4]);
});

test("a page that is not full is the last, once nothing comes behind it", async () => {
  const { reader } = logOf(1);
  await reader.read(false);
  expect(ids(reader)).toEqual([1]);
  expect(reader.more).toBe(false);
});

test("all of it is read to the end, and each line once", async () => {
  const { reader, log } = logOf(5);
  await reader.read(true);
  expect(ids(reader)).toEqual([1, 2, 3, 4, 5]);
  expect(reader.more).toBe(false);
  expect(log.asked).toBe(4); // three pages and an empty one
});

test("a line that comes while the end is being read is not missed", async () => {
  const { reader, log } = logOf(1, (asked) => {
    if (asked !== 2) return; // the empty page is on its way
    log.count = 2;
    void reader.read(true);
  });
  await reader.read(true);
  expect(ids(reader)).toEqual([1, 2]);
});

test("what cannot be read is told, and read when it is asked for again", async () => {
  let down = true;
  const { reader } = logOf(1, () => {
    if (down) throw new Error("down");
  });
  await reader.read(true);
  expect(reader.error).toBeInstanceOf(Error);
  down = false;
  await reader.read(true);
  expect(ids(reader)).toEqual([1]);
  expect(reader.error).toBeNull();
});
