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

  await page.getByRole("link", { name: /^All/ }).click();
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
  for (let i = 0; i < 249; i += 83)
    await Promise.all(Array.from({ length: 83 }, (_, k) => api.launch("any.json", i + k, `run-${i + k}`)));
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

test("rows are 36 pixels high, and Back finds the list where it was left", async ({ page, api }) => {
  for (let i = 0; i < 160; i += 80)
    await Promise.all(Array.from({ length: 80 }, (_, k) => api.launch("any.json", i + k, `run-${i + k}`)));
  await page.goto("/runs");
  const first = page.getByRole("row").nth(1);
  await expect(first).toBeVisible();
  expect((await first.boundingBox())!.height).toBe(36);
  const scrolled = () => page.evaluate(() => window.scrollY);
  // The list grows below what is shown: scroll until all of it is there, and its end is reached.
  await expect
    .poll(async () => {
      await page.mouse.wheel(0, 100_000);
      const end = await page.evaluate(
        () => window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 1,
      );
      return end && (await page.getByText("160 runs").count()) === 1 && (await scrolled()) > 4000;
    })
    .toBe(true);
  const left = await scrolled();
  const last = page.getByRole("row").last().getByRole("link");
  const id = await last.textContent();
  await last.click();
  await expect(page.locator(".run-facts")).toBeVisible();
  expect(await scrolled()).toBeLessThan(100);
  await page.goBack();
  await expect(page.getByRole("link", { name: id!, exact: true })).toBeInViewport();
  expect(Math.abs((await scrolled()) - left)).toBeLessThan(40);
});

test("runs between two moments, as a view that has a name", async ({ page, api }) => {
  await api.launch("any.json", 1, "now");
  await page.goto("/runs");
  await expect(page.getByRole("row")).toHaveCount(2);
  await page.getByRole("combobox", { name: "Started" }).selectOption("between…");
  await expect(page.getByRole("row")).toHaveCount(2);
  await page.getByLabel("from").fill("2001-01-01T00:00");
  await page.getByLabel("until").fill("2001-02-01T00:00");
  await expect(page.getByRole("heading", { name: "No run matches" })).toBeVisible();
  await expect(page).toHaveURL(/from=2001-01-01T00%3A00&until=2001-02-01T00%3A00/);
  await page.getByRole("button", { name: "Save this view…" }).click();
  await page.getByLabel("Name").fill("long ago");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Runs: long ago" })).toBeVisible();
  await expect(page).toHaveURL(/view=long\+ago/);
  await page.goto("/runs");
  await expect(page.getByRole("row")).toHaveCount(2);
  await page.getByRole("navigation", { name: "Saved views" }).getByRole("link", { name: "long ago" }).click();
  await expect(page.getByRole("heading", { name: "Runs: long ago" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "No run matches" })).toBeVisible();
  await page.getByRole("button", { name: "Remove the view long ago" }).click();
  await expect(page.getByRole("link", { name: "long ago" })).toHaveCount(0);
});

test("all that match are cancelled, and run again, by the server, a piece at a time", async ({ page, api }) => {
  for (let i = 0; i < 240; i += 80)
    await Promise.all(
      Array.from({ length: 80 }, (_, k) => api.launch("release", { version: `${i + k}` }, `r-${i + k}`)),
    );
  await page.goto("/runs?status=running");
  await expect(
    page.getByRole("navigation", { name: "Runs by status" }).getByRole("link", { name: /^running/ }),
  ).toHaveText("running 240");
  await page.getByRole("checkbox", { name: "Select all loaded runs" }).check();
  await page.getByRole("button", { name: "Select all 240 matching" }).click();
  const bar = page.getByRole("region", { name: "All matching runs" });
  await expect(bar).toContainText("All 240 matching selected");
  await bar.getByRole("button", { name: "Cancel them…" }).click();
  await page.getByRole("button", { name: "Cancel all that match" }).click();
  await expect(page.getByText("Cancelled: 240 of 240")).toBeVisible();
  expect(await api.status("r-0")).toBe("cancelled");
  await page.goto("/runs?status=cancelled&q=r-23");
  await page.getByRole("checkbox", { name: "Select all loaded runs" }).check();
  await page.getByRole("button", { name: /^Select all .*match/ }).click();
  await bar.getByRole("button", { name: "Run them again…" }).click();
  await page.getByRole("button", { name: "Run all that match again" }).click();
  await expect(page.getByText("Started again: 11 of 11")).toBeVisible(); // r-23 and r-230 to r-239
});
