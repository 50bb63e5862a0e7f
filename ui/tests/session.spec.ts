import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { disconnected, either, expect, expectAccessible, refused, test as base } from "./fixture";

const VIEWER = "viewer-token-0123456789abcdef";
const OPERATOR = "operator-token-0123456789abcdef";

const test = base.extend({
  // A file of tokens, of this test's own, and gone after it.
  serverOptions: async ({}, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "rival-ui-tokens-"));
    const file = path.join(folder, "tokens");
    writeFileSync(file, `viewer ${VIEWER}\noperator ${OPERATOR} ana\n`, { mode: 0o600 });
    await use(["--token-file", file]);
    rmSync(folder, { recursive: true });
  },
  expected: async ({}, use) => use(refused(401)),
});

test("nothing is seen without a token; an operator's opens everything", async ({ page }) => {
  await page.goto("/runs");
  await expect(page.getByRole("heading", { name: "Log in to Rival" })).toBeVisible();
  await expectAccessible(page);
  await page.getByLabel("Token").fill("a-wrong-token-0123456789abcdef");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("The server does not know this token.")).toBeVisible();
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Nothing has run yet" })).toBeVisible();
  await page.reload();
  await expect(page.getByText("operator")).toBeVisible();

  await page.goto("/workflows/release");
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.getByRole("button", { name: "Cancel…" })).toBeVisible();

  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { name: "Log in to Rival" })).toBeVisible();
});

test("who started, answered and cancelled is recorded, and shown in the run's head and history", async ({ page }) => {
  await page.goto("/runs");
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Nothing has run yet" })).toBeVisible();
  await page.goto("/workflows/release");
  await page.getByRole("button", { name: "Launch" }).click();
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.getByRole("button", { name: "Approve" })).toHaveCount(0);
  await expect(page.locator(".run-facts")).toContainText("by ana");
  const acts = page.getByRole("list", { name: "What somebody did" });
  await expect(acts).toContainText("Signal “approval” by ana");
  await page.getByRole("navigation", { name: "Parts of the run" }).getByRole("link", { name: "History" }).click();
  const events = page.getByRole("group", { name: "Events of the run" }).getByRole("listitem");
  await expect(events.filter({ hasText: "run.started" })).toContainText("by ana");
  await expect(events.filter({ hasText: "signal.received" })).toContainText("by ana");

  await page.goto("/workflows/release");
  await page.getByRole("button", { name: "Launch" }).click();
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await expect(acts).toContainText("Cancelled by ana");
  await page.reload();
  await expect(acts).toContainText("Cancelled by ana");
});

test("a viewer sees everything and can touch nothing", async ({ page, playwright, server }) => {
  const operator = await playwright.request.newContext({
    baseURL: server.url,
    extraHTTPHeaders: { Authorization: `Bearer ${OPERATOR}` },
  });
  const started = await operator.post("/api/v1/workflows/release/runs", { data: { runId: "theirs" } });
  expect(started.status()).toBe(202);
  await operator.dispose();

  await page.goto("/runs");
  await page.getByLabel("Token").fill(VIEWER);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("row", { name: /theirs/ })).toBeVisible();
  await expect(page.getByRole("checkbox")).toHaveCount(0);
  await page.getByRole("link", { name: "theirs" }).click();
  await expect(page.getByText("waits for the signal")).toBeVisible();
  for (const name of ["Cancel…", "Signal…", "Approve", "Other answer…"])
    await expect(page.getByRole("button", { name })).toHaveCount(0);
  await page.goto("/workflows/release");
  await expect(page.getByRole("heading", { name: "You may look, but not launch" })).toBeVisible();
});

test("a session that has ended leads back to the log-in, and on", async ({ page, context }) => {
  await page.goto("/runs");
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Nothing has run yet" })).toBeVisible();
  await context.clearCookies();
  // The next thing that the page asks for is refused: because of the click, or of itself before that.
  const login = page.getByRole("heading", { name: "Log in to Rival" });
  const workflows = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Workflows" });
  await expect(async () => {
    if (!(await login.isVisible())) {
      await workflows.click({ timeout: 2000 });
      await page.getByRole("link", { name: "greet", exact: true }).click({ timeout: 2000 });
    }
    await expect(login).toBeVisible({ timeout: 5000 });
  }).toPass();
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Log in" }).click();
  await workflows.click();
  await expect(page.getByRole("heading", { name: "Workflows" })).toBeVisible();
});

test.describe("a stream that is refused", () => {
  test.use({ expected: either(refused(401), disconnected) });

  test("ends in the log-in, which says so, at the same address", async ({ page, server }) => {
    await page.goto("/runs?status=failed");
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Log in" }).click();
    await expect(page.getByRole("heading", { name: "No run matches" })).toBeVisible();
    await expect(page.getByText("Your session ended")).toHaveCount(0);
    // Sessions end with their server; the page asks for nothing but its stream.
    await server.stop("SIGKILL");
    await server.start();
    await expect(page.getByRole("heading", { name: "Log in to Rival" })).toBeVisible();
    await expect(page.getByText("Your session ended.")).toBeVisible();
    await expectAccessible(page);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Log in" }).click();
    await expect(page).toHaveURL(/\/runs\?status=failed$/);
    await expect(page.getByRole("heading", { name: "No run matches" })).toBeVisible();
  });
});
