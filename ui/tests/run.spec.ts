import { disconnected, expect, refused, test } from "./fixture";

const status = ".run-facts";

test("a run is watched to its end without a reload, and approved by a signal", async ({ page, api }) => {
  const id = await api.launch("release", { version: "2.1" });
  await page.goto(`/runs/${id}`);
  await expect(page.locator(status)).toContainText("running");
  await expect(page.getByText("'answer' waits for the signal 'approval'")).toBeVisible();

  await page.getByRole("button", { name: "Answer…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("approval");
  await dialog.getByLabel("Content, as JSON").fill("not json");
  await dialog.getByRole("button", { name: "Send" }).click();
  await expect(dialog).toContainText("This is not JSON");
  await dialog.getByLabel("Content, as JSON").fill('{ "approved": true, "by": "Ada" }');
  await dialog.getByRole("button", { name: "Send" }).click();

  await expect(page.locator(status)).toContainText("completed");
  await expect(page.getByText("waits for the signal")).toHaveCount(0);
  await page.getByRole("link", { name: "Input & output" }).click();
  await expect(page.getByRole("group", { name: "the result of decide" })).toContainText("shipped 2.1");
});

test("a run is cancelled after a question", async ({ page, api }) => {
  const id = await api.launch("release");
  await page.goto(`/runs/${id}`);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Keep it running" }).click();
  expect(await api.status(id)).toBe("running");
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await expect(page.locator(status)).toContainText("cancelled");
  await expect(page.getByRole("button", { name: "Cancel…" })).toHaveCount(0);
  expect(await api.status(id)).toBe("cancelled");
});

test("a reload in the middle loses nothing", async ({ page, api }) => {
  const id = await api.launch("release");
  await page.goto(`/runs/${id}/data`);
  await expect(page.getByRole("group", { name: "the result of notes" })).toBeVisible();
  await page.reload();
  await expect(page.locator(status)).toContainText("running");
  await expect(page.getByRole("group", { name: "the result of notes" })).toBeVisible();
  await api.post(`/runs/${id}/signals/approval`, { approved: false });
  await expect(page.locator(status)).toContainText("completed");
  await expect(page.getByRole("group", { name: "the result of decide" })).toContainText("held back");
});

test("why a run failed stands at its top", async ({ page, api }) => {
  const id = await api.launch("fail");
  await page.goto(`/runs/${id}`);
  await expect(page.locator(status)).toContainText("failed");
  await expect(page.getByRole("group", { name: "Error" })).toContainText("bad failed");
  await expect(page.getByRole("group", { name: "Error" })).toContainText("no such luck");
});

test.describe("a server that goes away", () => {
  test.use({ serverOptions: [], expected: disconnected });

  test("is noticed, and its return too, without a reload", async ({ page, api, server }) => {
    const id = await api.launch("release");
    await page.goto(`/runs/${id}`);
    await expect(page.getByText("waits for the signal")).toBeVisible();
    await page.evaluate(() => Object.assign(window, { here: "still" }));

    await server.stop("SIGKILL");
    await expect(page.getByText("Connection lost.")).toBeVisible();
    await expect(page.locator(status)).toContainText("running");

    await server.start();
    await api.post(`/runs/${id}/signals/approval`, { approved: true });
    await expect(page.locator(status)).toContainText("completed");
    await expect(page.getByText("Connection lost.")).toHaveCount(0);
    expect(await page.evaluate(() => (window as unknown as { here?: string }).here)).toBe("still");
  });
});

test.describe("what is not there", () => {
  test.use({ expected: refused(404) });
  test("has a page that says so", async ({ page }) => {
    await page.goto("/runs/nobody.knows:it");
    await expect(page.getByRole("heading", { name: "The run nobody.knows:it does not exist" })).toBeVisible();
    await expect(page.getByText("removed by retention")).toBeVisible();
    await page.goto("/workflows/nosuch");
    await expect(page.getByRole("heading", { name: "The workflow nosuch does not exist" })).toBeVisible();
    await expect(page.getByText("no longer has its file")).toBeVisible();
    await page.goto("/runs/%ff");
    await expect(page.getByRole("heading", { name: "This page does not exist" })).toBeVisible();
    await page.goto("/no/such/page");
    await expect(page.getByRole("heading", { name: "This page does not exist" })).toBeVisible();
    await page.getByRole("link", { name: "All runs" }).click();
    await expect(page.getByRole("heading", { name: "Runs" })).toBeVisible();
  });
});

test("a run whose id a browser cannot ask for is in the list, and its page says how to see it", async ({ page, api }) => {
  await api.launch("any.json", undefined, "..");
  await page.goto("/runs");
  await page.getByRole("link", { name: "..", exact: true }).click();
  await expect(page.getByRole("heading", { name: "The run .. cannot be shown here" })).toBeVisible();
  await expect(page.getByText("rival show ..")).toBeVisible();
});

test("the log is filtered by text, step and level, and follows the run", async ({ page, api }) => {
  const id = await api.launch("talk");
  await page.goto(`/runs/${id}/logs`);
  const log = page.getByRole("log");
  await expect(log.getByText("beta needle").first()).toBeVisible();

  await page.getByLabel("Search in the log").fill("needle");
  await expect(page.getByText("2 lines")).toBeVisible();
  await expect(page).toHaveURL(/q=needle/);
  await page.getByLabel("Search in the log").fill("");
  await page.getByLabel("Step").fill("alpha");
  await expect(page.getByText(/^1,500 lines|^500 lines, more below/)).toBeVisible();
  await expect(log.getByText("beta needle")).toHaveCount(0);
  await page.getByLabel("Step").fill("");
  await page.getByLabel("Level").selectOption("error");
  await expect(page.getByText("No line matches")).toBeVisible();
  await page.getByLabel("Level").selectOption("info");

  await page.getByRole("checkbox", { name: "Follow" }).check();
  await api.post(`/runs/${id}/signals/go`, null);
  await expect(log.getByText("gamma says goodbye")).toBeVisible();
});
