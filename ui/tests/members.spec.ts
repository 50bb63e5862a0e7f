import { expect, expectAccessible, expectNoSideScroll, test, withMembers } from "./fixture";

test("one process drives a store in a file: no members, and how there would be some", async ({ page }) => {
  await page.goto("/members");
  await expect(page.getByRole("heading", { name: "One process drives this store" })).toBeVisible();
  await expectAccessible(page);
  await page.goto("/");
  await expect(page.getByRole("region", { name: "Store and engine" })).toContainText("Runs under way");
  await expect(page.getByRole("link", { name: "Members" })).toHaveCount(0);
});

test("those that share a store: what each has, its lease and its version", async ({ page }) => {
  await withMembers(page);
  await page.goto("/");
  await page.getByRole("region", { name: "Store and engine" }).getByRole("link", { name: "2" }).click();
  await expect(page.getByRole("heading", { name: "Members" })).toBeVisible();
  const rows = page.getByRole("row");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(1)).toContainText("4242 on a · answers this page");
  await expect(rows.nth(1)).toContainText("15 · 75 %");
  await expect(rows.nth(1)).toContainText(/(1 h|59 min).* left/);
  await expect(rows.nth(1)).toContainText("1 h ago");
  await expect(rows.nth(1)).toContainText("0.1.0");
  await expect(rows.nth(2)).toContainText("over: its runs are taken over");
  await expectAccessible(page);
  await page.setViewportSize({ width: 390, height: 780 });
  await expectNoSideScroll(page);
});
