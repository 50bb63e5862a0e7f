import { expect, test } from "vitest";
import { figuresOf } from "./figures";

test("figures of the server", () => {
  const figures = figuresOf('# HELP x\nrival_store_bytes 4096\nrival_runs{status="failed"} 2\nx_bucket{le="1"} 7\n');
  expect(figures.get("rival_store_bytes")).toBe(4096);
  expect(figures.get('rival_runs{status="failed"}')).toBe(2);
  expect(figures.size).toBe(2);
});
