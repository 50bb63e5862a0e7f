import { Api, expect, test } from "./fixture";

/* A run of twenty thousand nodes, made once for all of these. */
test.describe.configure({ mode: "default" });
let id = "";
test.beforeAll(async ({ shared, playwright }) => {
  test.setTimeout(180_000);
  const request = await playwright.request.newContext();
  const api = new Api(request, shared);
  id = await api.launch("big", { items: 10_000 });
  await expect.poll(() => api.status(id), { timeout: 150_000 }).toBe("completed");
  await request.dispose();
});

test("a run of twenty thousand nodes asks for no more than a small one", async ({ page }) => {
  let bytes = 0;
  page.on("response", async (response) => {
    if (response.url().includes("/api/") && !response.url().includes("/events"))
      bytes += (await response.body()).length;
  });
  await page.goto(`/runs/${id}`);
  await expect(page.locator(".run-facts")).toContainText("completed");
  await expect(page.getByText("10,000 of 10,000", { exact: true })).toBeAttached();
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(20_000);
  await page.getByRole("link", { name: "Input & output" }).click();
  await expect(page.getByRole("group", { name: "the result of sum" })).toContainText("10000");
  expect(await page.locator("*").count()).toBeLessThan(3000);
});

for (const tab of ["nodes", "timeline"])
  test(`twenty thousand nodes are as many rows as fit, in ${tab}`, async ({ page }) => {
    await page.goto(`/runs/${id}/${tab}`);
    await page.getByRole("button", { name: "Open each" }).click();
    const grid = page.getByRole("treegrid");
    await expect(grid.getByRole("row", { name: /#5$|#5 / }).first()).toBeVisible();
    await expect(grid).toHaveAttribute("aria-rowcount", "10004");
    await grid.getByRole("row", { name: /each/ }).focus();
    await page.keyboard.press("End");
    await expect(grid.getByRole("row", { name: /completed: sum/ })).toBeFocused();
    await expect(grid.getByRole("row", { name: /#10,000/ })).toBeVisible();
    expect(await page.locator("*").count()).toBeLessThan(2000);
  });
