import { defineConfig } from "@playwright/test";

/* The browser is Debian's. Time limits are for a machine that is busy with other things. Nothing is tried
 * twice: a test that passes now and then is mended. */
export default defineConfig({
  testDir: "tests",
  testMatch: "*.spec.ts",
  fullyParallel: true,
  workers: 2,
  timeout: 120_000,
  retries: 0,
  expect: { timeout: 30_000 },
  reporter: process.env.TAP ? [["./tests/tap.ts"]] : [["list"]],
  outputDir: "test-results",
  use: {
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium" },
    viewport: { width: 1280, height: 800 },
    contextOptions: { reducedMotion: "reduce" }, // nothing here is about motion, and it costs a processor
    screenshot: "only-on-failure",
  },
});
