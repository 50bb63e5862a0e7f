import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Page, Route } from "@playwright/test";
import { expect, test } from "./fixture";

const status = ".run-facts";
const graphOf = (page: Page) => page.getByRole("region", { name: /^Graph of the run/ });
const waits = (page: Page) => page.getByRole("region", { name: "Waits for a decision" });

/** The page of a run, once its stream is open. */
async function follow(page: Page, runId: string): Promise<void> {
  const stream = page.waitForResponse((response) => response.url().includes(`/runs/${runId}/events`));
  await page.goto(`/runs/${runId}`);
  await stream;
  await expect(graphOf(page).getByRole("button", { name: "running: gate" })).toBeVisible();
}

test.describe("a step that takes its process with it", () => {
  test.use({ workflows: "workflows-c" });

  test("is shown in the C file as its author wrote it", async ({ page }) => {
    await page.goto("/workflows/fragile/definition");
    const written = readFileSync(path.join(import.meta.dirname, "workflows-c/fragile.c"), "utf8");
    await expect(page.locator(".workflow-source")).toHaveText(written);
  });

  test("suspends the run before the reader's eyes, and it is aborted", async ({ page, api }) => {
    const id = await api.launch("fragile");
    await follow(page, id);
    // Nodes are not answered from here on: what the graph shows comes from the feed.
    const held: Route[] = [];
    let holding = true;
    await page.route(/\/nodes\?/, (route) => (holding ? void held.push(route) : route.continue()));
    await api.post(`/runs/${id}/signals/go`, null);
    await expect(graphOf(page).getByRole("button", { name: "suspended: fragile" })).toBeVisible();
    holding = false;
    for (const route of held) await route.continue();

    await expect(page.locator(status)).toContainText("suspended");
    await expect(waits(page)).toContainText("its process died, 4 times");
    await graphOf(page).getByRole("button", { name: "suspended: fragile" }).click();
    const card = page.getByRole("complementary", { name: "Node fragile" });
    await expect(card).toContainText("Why it is suspended");
    await expect(card).toContainText("its process died");

    await page.getByRole("button", { name: "Abort…" }).click();
    await page.getByLabel(/^Reason/).fill("nobody will ever mend it");
    await page.getByRole("button", { name: "Abort the run" }).click();
    await expect(page.locator(status)).toContainText("failed");
    await expect(page.getByRole("group", { name: "Error of the run" })).toContainText("nobody will ever mend it");
    await expect(graphOf(page).getByRole("button", { name: "failed: fragile" })).toBeVisible();
    await expect(waits(page)).toHaveCount(0);
  });

  test("the list of runs says why one is suspended", async ({ page, api }) => {
    const id = await api.launch("fragile");
    await page.goto(`/runs?q=${id}`);
    const row = page.getByRole("row", { name: new RegExp(id) });
    await expect(row).toContainText("running");
    await api.post(`/runs/${id}/signals/go`, null);
    await expect(row).toContainText("suspended");
    await expect(row).toContainText("its process died");
    await page.goto("/");
    await expect(page.getByRole("region", { name: "Needs somebody" })).toContainText(/killed|crash|died|process/i);
  });

  test("suspends the run, which is resumed once it is mended", async ({ page, api, server }) => {
    const id = await api.launch("fragile");
    await follow(page, id);
    await api.post(`/runs/${id}/signals/go`, null);
    await expect(waits(page)).toContainText("its process died, 4 times");
    await expect(graphOf(page).getByRole("button", { name: "suspended: fragile" })).toBeVisible();

    writeFileSync(path.join(server.folder, "mended"), "");
    await page.getByRole("button", { name: "Resume…" }).click();
    await page.getByRole("button", { name: "Resume the run" }).click();
    await expect(page.locator(status)).toContainText("completed");
    await expect(graphOf(page).getByRole("button", { name: "completed: fragile" })).toBeVisible();
  });
});
