import { defineConfig } from "@playwright/test";

/* The browser is Debian's; each test starts a server of its own (tests/fixture.ts). */
export default defineConfig({
  testDir: "tests",
  testMatch: "*.spec.ts",
  fullyParallel: true,
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: process.env.TAP ? [["./tests/tap.ts"]] : [["list"]],
  outputDir: "test-results",
  use: {
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium" },
    viewport: { width: 1280, height: 800 },
    screenshot: "only-on-failure",
  },
});
