import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/* Not a test: `npm run screens` makes the pictures of docs/screens.md. */
export default defineConfig({ ...tests, testMatch: "screens.ts", reporter: [["list"]], workers: 1, retries: 0 });
