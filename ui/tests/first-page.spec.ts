import { expect, test } from "./fixture";

test.use({ serverOptions: [] });

const LOADS = 5;
/** Over the wire; the number itself is in docs/guide/ui.md. */
const MOST_KB = 130;

interface Load {
  paint: number;
  content: number;
  ready: number;
  bytes: number;
  files: number;
}

const median = (values: number[]) => Math.round(values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!);

test("the first page is small, and painted soon", async ({ browser, server }) => {
  const loads: Load[] = [];
  for (let i = 0; i < LOADS; i++) {
    const context = await browser.newContext({ baseURL: server.url }); // with nothing in its cache
    const page = await context.newPage();
    await page.goto("/");
    await expect(page.getByText("Nothing waits for anybody.")).toBeVisible();
    await page.waitForFunction(
      () =>
        performance.getEntriesByName("first-contentful-paint").length > 0 &&
        performance.getEntriesByType("resource").some((entry) => entry.name.endsWith("/metrics")),
    );
    loads.push(
      await page.evaluate(() => {
        const entries = [
          ...performance.getEntriesByType("navigation"),
          ...performance.getEntriesByType("resource"),
        ] as PerformanceResourceTiming[];
        const paint = (name: string) => performance.getEntriesByName(name)[0]?.startTime ?? NaN;
        const ready = performance
          .getEntriesByType("resource")
          .find((entry) => entry.name.endsWith("/metrics")) as PerformanceResourceTiming;
        return {
          paint: paint("first-paint"),
          content: paint("first-contentful-paint"),
          ready: ready.responseEnd,
          bytes: entries.reduce((sum, entry) => sum + entry.transferSize, 0),
          files: entries.length,
        };
      }),
    );
    await context.close();
  }
  const of = (key: keyof Load) => median(loads.map((load) => load[key]));
  console.log(
    `first page, cold, median of ${LOADS} loads: first paint after ${of("paint")} ms, first content after ${of("content")} ms, ` +
      `its data after ${of("ready")} ms, ${(of("bytes") / 1000).toFixed(1)} KB over the wire in ${of("files")} requests`,
  );
  expect(of("content")).toBeGreaterThan(0);
  expect(of("bytes")).toBeLessThan(MOST_KB * 1000);
});
