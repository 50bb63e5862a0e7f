import { expect, expectAccessible, expectNoSideScroll, test } from "./fixture";

for (const [scheme, width] of [
  ["light", 1280],
  ["dark", 390],
] as const) {
  test.describe(`${scheme}, ${width} pixels wide`, () => {
    test.use({ colorScheme: scheme, viewport: { width, height: 800 } });

    test("axe finds nothing, and nothing sticks out, on any page", async ({ page, api }) => {
      test.slow(); // many pages
      const waiting = await api.launch("release");
      const failed = await api.launch("fail");
      const done = await api.launch("greet", { name: "Ada", people: [{ age: 36 }, { age: 41 }] });
      await expect.poll(() => api.status(failed)).toBe("failed");
      const pages = [
        "/",
        "/workflows",
        "/workflows/greet",
        "/workflows/any.json",
        "/workflows/release/plan",
        "/workflows/release/definition",
        "/runs",
        "/runs?status=suspended",
        `/runs/${waiting}`,
        ...["graph", "timeline", "nodes", "logs", "data", "history"].map((tab) => `/runs/${done}/${tab}`),
        `/runs/${failed}/logs`,
        "/nowhere",
      ];
      for (const path of pages) {
        await page.goto(path);
        await expect(page.getByRole("heading").first()).toBeVisible();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await test.step(path, async () => {
          await expectAccessible(page);
          await expectNoSideScroll(page);
        });
      }
      await page.goto(`/runs/${waiting}`);
      await page.getByRole("button", { name: "Other answer…" }).click();
      await expectAccessible(page);
    });
  });
}

test("the keyboard reaches the content without going through the head", async ({ page }) => {
  await page.goto("/workflows");
  await expect(page.getByRole("heading", { name: "Workflows" })).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to the content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
});

test("light or dark is chosen by hand, and kept", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/workflows");
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.getByRole("button", { name: /Change to light/ }).click();
  await page.getByRole("button", { name: /Change to dark/ }).click();
  await expect.poll(ground).not.toBe(light);
  await page.reload();
  await expect(page.getByRole("heading", { name: "Workflows" })).toBeVisible();
  await expect.poll(ground).not.toBe(light);
});
