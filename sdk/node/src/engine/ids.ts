/** ids.ts: ids of runs, made here so that a start whose answer was lost can be asked again. They sort by time. */
import { randomBytes } from "node:crypto";

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"; // Crockford's base 32
const TIME_DIGITS = 10;
const CHANCE_DIGITS = 16;

export function newRunId(now = Date.now()): string {
  let time = "";
  for (let rest = now, i = 0; i < TIME_DIGITS; i++, rest = Math.floor(rest / 32)) time = DIGITS[rest % 32]! + time;
  let chance = "";
  for (const byte of randomBytes(CHANCE_DIGITS)) chance += DIGITS[byte % 32]!;
  return time + chance;
}
