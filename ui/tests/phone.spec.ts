/* What the lists tell at the width of a phone. */
import { expect, expectNoSideScroll, test } from "./fixture";

test.use({ serverOptions: [], viewport: { width: 390, height: 844 } });

test("runs are told apart by id, why they failed and input; those that wait by workflow", async ({ page, api }) => {
  await api.launch("fail", undefined, "nightly-1");
  await api.launch("any.json", { customer: "Ada" }, "import-1");
  await api.launch("release", { version: "4711" }, "release-1");
  await page.goto("/runs");
  const failed = page.getByRole("row", { name: /nightly-1/ });
  await expect(failed.getByRole("link", { name: "nightly-1" })).toBeVisible();
  const why = failed.getByText(/no such luck/);
  await expect(why).toBeVisible();
  const [id, reason] = [await failed.getByText("nightly-1").boundingBox(), await why.boundingBox()];
  expect(reason!.y, "one does not cover the other").toBeGreaterThanOrEqual(id!.y + id!.height - 1);
  await expect(page.getByRole("row", { name: /import-1/ }).getByText('{"customer":"Ada"}')).toBeVisible();
  await expectNoSideScroll(page);
  await page.goto("/");
  const waits = page.getByRole("list", { name: "The oldest that wait" }).getByRole("listitem");
  await expect(waits).toContainText("release-1 release");
  const cut = await waits.locator(".home-name").evaluate((name) => name.scrollWidth - name.clientWidth);
  expect(cut, "pixels cut off").toBeLessThanOrEqual(0);
});

test("the history says where each thing happened", async ({ page, api }) => {
  const id = await api.launch("nested");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}/history`);
  const events = page.getByRole("group", { name: "Events of the run" });
  await expect(events.getByRole("listitem").first()).toContainText("run.started");
  const [kind, saying] = ["run.started", "status running"].map((text) => events.getByText(text).first());
  await expect(saying!).toBeVisible();
  const [above, below] = [await kind!.boundingBox(), await saying!.boundingBox()];
  expect(below!.y).toBeGreaterThanOrEqual(above!.y + above!.height);
  expect(below!.x).toBeLessThan(100);
  const where = events.getByRole("link", { name: "tables #2 › rows #1 › insert" }).first();
  await expect(where).toBeVisible();
  const cut = await where.evaluate((link) => link.parentElement!.scrollWidth - link.parentElement!.clientWidth);
  expect(cut, "pixels cut off").toBeLessThanOrEqual(0);
  await expectNoSideScroll(page);
});
