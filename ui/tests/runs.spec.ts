import { expect, test } from "./fixture";

test.use({ serverOptions: [] }); // these count all runs

test("the list grows and changes by itself", async ({ page, api }) => {
  await page.goto("/runs");
  await expect(page.getByRole("heading", { name: "Nothing has run yet" })).toBeVisible();
  const first = await api.launch("release", {}, "first");
  const row = page.getByRole("row", { name: /first/ });
  await expect(row).toContainText("running");
  await api.post(`/runs/${first}/cancel`);
  await expect(row).toContainText("cancelled");
  await api.launch("greet", { name: "Ada", people: [{ age: 1 }] }, "second");
  await expect(page.getByRole("row")).toHaveCount(3);
  await expect(page.getByRole("row").nth(1)).toContainText("second");
});

test("filters and search are in the address, and survive a reload", async ({ page, api }) => {
  await api.launch("release", {}, "waiting-1");
  await api.launch("fail", undefined, "broken-1");
  await api.launch("greet", { name: "Grace Hopper", people: [{ age: 1 }] }, "greeted-1");
  await page.goto("/runs");
  await expect(page.getByRole("row")).toHaveCount(4);

  await page.getByRole("navigation", { name: "Runs by status" }).getByRole("link", { name: "failed" }).click();
  await expect(page.getByRole("row")).toHaveCount(2);
  await expect(page.getByRole("row").nth(1)).toContainText("no such luck");
  await expect(page).toHaveURL(/status=failed/);
  await page.reload();
  await expect(page.getByRole("row")).toHaveCount(2);

  await page.getByRole("link", { name: "All", exact: true }).click();
  await page.getByRole("searchbox").fill("Hopper");
  await expect(page.getByRole("row")).toHaveCount(2);
  await expect(page.getByRole("row").nth(1)).toContainText("greeted-1");
  await expect(page).toHaveURL(/q=Hopper/);

  await page.getByRole("searchbox").fill("nothing like this");
  await expect(page.getByRole("heading", { name: "No run matches" })).toBeVisible();
  await page.getByRole("button", { name: "Show all runs" }).click();
  await page.getByRole("combobox", { name: "Workflow" }).selectOption("release");
  await expect(page.getByRole("row")).toHaveCount(2);
  await expect(page.getByRole("row").nth(1)).toContainText("waiting-1");
});

test("several runs are selected and cancelled together", async ({ page, api }) => {
  for (let i = 1; i <= 3; i++) await api.launch("release", {}, `r${i}`);
  await api.launch("fail", undefined, "ended");
  await page.goto("/runs");
  await page.getByRole("checkbox", { name: "Select all loaded runs" }).check();
  await page.getByRole("checkbox", { name: "Select r2" }).uncheck();
  await expect(page.getByRole("region", { name: "Selected runs" })).toContainText("3 selected");
  await page.getByRole("button", { name: "Cancel 2" }).click();
  await page.getByRole("button", { name: "Cancel them" }).click();
  await expect(page.getByText("Cancelled 2 runs")).toBeVisible();
  await expect(page.getByRole("row", { name: /r1/ })).toContainText("cancelled");
  await expect(page.getByRole("row", { name: /r2/ })).toContainText("running");
  expect(await api.status("ended")).toBe("failed");
});

test("a long list is read page by page, and only what is seen is drawn", async ({ page, api }) => {
  await api.launch("any.json", 0, "the-first"); // by itself: those that are begun at once come in any order
  for (let i = 0; i < 249; i += 83) await Promise.all(Array.from({ length: 83 }, (_, k) => api.launch("any.json", i + k, `run-${i + k}`)));
  await page.goto("/runs");
  await expect(page.getByRole("row").nth(1)).toBeVisible();
  expect(await page.getByRole("row").count()).toBeLessThan(60);
  await expect
    .poll(async () => {
      await page.mouse.wheel(0, 100_000); // to the end of what is there by now
      return page.getByText("the-first").count();
    })
    .toBe(1);
  await expect(page.getByText("250 runs")).toBeVisible();
  expect(await page.getByRole("row").count()).toBeLessThan(60);
});

test("runs are opened and selected by keys", async ({ page, api }) => {
  await api.launch("release", {}, "older");
  await api.launch("release", {}, "newer");
  await page.goto("/workflows");
  await expect(page.getByRole("heading", { name: "Workflows" })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await expect(page.getByRole("row")).toHaveCount(3);
  // The list may be there a moment before it listens; k stays at the first row, however often.
  await expect(async () => {
    await page.keyboard.press("k");
    await expect(page.getByRole("link", { name: "newer" })).toBeFocused({ timeout: 500 });
  }).toPass();
  await page.keyboard.press("j");
  await expect(page.getByRole("link", { name: "older" })).toBeFocused();
  await page.keyboard.press("x");
  await expect(page.getByRole("checkbox", { name: "Select older" })).toBeChecked();
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/runs\/newer/);
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});
