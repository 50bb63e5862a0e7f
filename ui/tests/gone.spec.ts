import path from "node:path";
import { disconnected, either, expect, refused, rival, test } from "./fixture";

/* Retention removes events that the page has not seen: where it was cannot be gone on from (410). */
test.use({ serverOptions: [], expected: either(refused(410), disconnected) });

test("a page whose place in the feed is gone reads anew, and goes on", async ({ page, api, server }) => {
  await page.goto("/runs");
  await expect(page.getByRole("heading", { name: "Nothing has run yet" })).toBeVisible();
  await api.launch("release", {}, "waiting");
  await expect(page.getByRole("row", { name: /waiting/ })).toContainText("running");
  await page.evaluate(() => Object.assign(window, { here: "still" }));

  await server.stop();
  await expect(page.getByText("Connection lost.")).toBeVisible();
  const file = path.join(import.meta.dirname, "workflows/any.yaml");
  for (const id of ["removed", "kept"]) await rival("exec", file, "--store", server.store, "--run-id", id);
  await rival("retain", "--keep", "1", "--store", server.store);

  const gone = page.waitForResponse((response) => response.url().includes("/events") && response.status() === 410);
  await server.start();
  await gone;
  await expect(page.getByRole("row", { name: /kept/ })).toContainText("completed");
  await expect(page.getByRole("row")).toHaveCount(3);
  await expect(page.getByText("Connection lost.")).toHaveCount(0);

  await api.post("/runs/waiting/signals/approval", { approved: true });
  await expect(page.getByRole("row", { name: /waiting/ })).toContainText("completed");
  expect(await page.evaluate(() => (window as unknown as { here?: string }).here)).toBe("still");
});
