import { disconnected, expect, expectAccessible, expectNoSideScroll, test } from "./fixture";

test("the graph shows what happens as it happens", async ({ page, api }) => {
  const id = await api.launch("figures");
  await page.goto(`/runs/${id}/graph`);
  const graph = page.getByRole("region", { name: /^Graph of the run/ });
  await expect(graph.getByRole("button", { name: "running: gate" })).toBeVisible();
  await expect(graph.getByRole("button", { name: "completed: check" })).toBeAttached();
  await expect(graph.getByRole("button", { name: "skipped: few" })).toBeAttached();
  await expect(graph.getByRole("button", { name: "pending: last" })).toBeAttached();
  await api.post(`/runs/${id}/signals/go`, null);
  await expect(graph.getByRole("button", { name: "completed: last" })).toBeAttached();
});

test("boxes open and close, and the view is moved and zoomed by keys", async ({ page, api }) => {
  const id = await api.launch("figures");
  await page.goto(`/runs/${id}/graph`);
  const graph = page.getByRole("region", { name: /^Graph of the run/ });
  await expect(graph.getByRole("button", { name: ": write" })).toBeAttached();
  const place = () => page.locator(".react-flow__viewport").getAttribute("style");
  await page.getByRole("button", { name: "Fit" }).click();
  await graph.getByRole("button", { name: "Close notify" }).click();
  await expect(graph.getByRole("button", { name: ": write" })).toHaveCount(0);
  await graph.getByRole("button", { name: "Open notify" }).click();
  await expect(graph.getByRole("button", { name: ": write" })).toBeAttached();

  await graph.focus();
  const before = await place();
  await page.keyboard.press("ArrowDown");
  await expect.poll(place).not.toBe(before);
  const moved = await place();
  await page.keyboard.press("+");
  await expect.poll(place).not.toBe(moved);
});

test("iterations are counted, and the one that is shown can be chosen", async ({ page, api }) => {
  const id = await api.launch("figures", { items: 300 });
  await page.goto(`/runs/${id}/graph`);
  await expect(page.getByText("300 of 300", { exact: true })).toBeAttached();
  await page.getByRole("button", { name: "Fit" }).click();
  await page.getByRole("button", { name: /^latest: #300/ }).click();
  const dialog = page.getByRole("dialog", { name: "Iterations of each" });
  await expect(dialog.getByRole("button", { name: /^#300/ })).toBeVisible();
  expect(await dialog.getByRole("listitem").count()).toBeLessThan(40);
  await expect(async () => {
    await dialog.getByRole("list").hover();
    await page.mouse.wheel(0, -20_000);
    await dialog.getByRole("button", { name: /^#3 / }).click({ timeout: 2000 });
  }).toPass();
  await expect(page.getByRole("button", { name: /^#3 of 300/ })).toBeVisible();
  await page.getByRole("button", { name: "completed: fetch" }).click();
  await expect(page.getByRole("complementary", { name: "Node each:iter2:node0:fetch" })).toBeVisible();
});

test("a card tells what is known of a node, and has an address", async ({ page, api }) => {
  const id = await api.launch("figures");
  await page.goto(`/runs/${id}/nodes`);
  await page.getByRole("row", { name: /flaky/ }).click();
  const card = page.getByRole("complementary", { name: "Node flaky" });
  await expect(card).toContainText("Attempts3");
  await expect(card).toContainText("1. failed");
  await expect(card).toContainText("exit code 1: try 2");
  await expect(card.getByRole("group", { name: "the result" })).toHaveText("7");
  await expect(page).toHaveURL(/node=flaky/);
  await page.reload();
  await expect(card).toContainText("3. completed");
  await card.getByRole("link", { name: "Open in Logs" }).click();
  await expect(page.getByRole("log")).toContainText("try 3");
  await page.goBack();
  await expect(card).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(card).toHaveCount(0);
});

test("the card of a step that runs goes on by itself", async ({ page, api }) => {
  const id = await api.launch("figures");
  await page.goto(`/runs/${id}/graph?node=gate`);
  const card = page.getByRole("complementary", { name: "Node gate" });
  await expect(card.locator(".badge")).toHaveText("running");
  await api.post(`/runs/${id}/signals/go`, { by: "Ada" });
  await expect(card.locator(".badge")).toHaveText("completed");
  await expect(card.getByRole("group", { name: "the result" })).toContainText("Ada");
});

test("the tree is walked with the arrow keys", async ({ page, api }) => {
  const id = await api.launch("figures");
  await page.goto(`/runs/${id}/nodes`);
  const row = (name: RegExp) => page.getByRole("row", { name });
  await expect(row(/each/)).toBeVisible();
  await row(/completed: find/).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(row(/notify/)).toBeFocused();
  await page.keyboard.press("ArrowLeft");
  await expect(row(/email/)).toHaveCount(0);
  await page.keyboard.press("ArrowRight");
  await expect(row(/email/)).toBeVisible();
  await page.keyboard.press("ArrowRight");
  await expect(row(/email/)).toBeFocused();
  await page.keyboard.press("ArrowLeft");
  await expect(row(/notify/)).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("complementary", { name: "Node notify" })).toBeVisible();
});

test("the timeline tells attempts and waits apart, and leaves idle time out when told", async ({ page, api }) => {
  const id = await api.launch("figures");
  await page.goto(`/runs/${id}/timeline`);
  const grid = page.getByRole("treegrid", { name: "Timeline of the run" });
  const bars = (name: RegExp, kind: string) => grid.getByRole("row", { name }).locator(`.bar-${kind}`);
  await expect(bars(/gate/, "signal")).toBeVisible();
  await expect(bars(/flaky/, "failed")).toHaveCount(2);
  await expect(bars(/flaky/, "retry")).toHaveCount(2);
  await expect(bars(/flaky/, "work")).toHaveCount(1);
  await expect(bars(/rest/, "timer")).toHaveCount(1);
  await expect(grid.getByRole("row", { name: /flaky/ }).getByRole("gridcell")).toHaveAccessibleName(
    /3 attempts, attempt that failed for/,
  );

  await expect(grid.locator(".break").first()).toBeVisible();
  // What both waits take: the run still waits, so each alone may shrink beside the other while we look.
  const width = async () => {
    const boxes = await Promise.all([bars(/rest/, "timer").boundingBox(), bars(/gate/, "signal").boundingBox()]);
    return boxes.reduce((sum, box) => sum + box!.width, 0);
  };
  const pressed = await width();
  await page.getByRole("checkbox", { name: "Compress idle time" }).uncheck();
  await expect(grid.locator(".break")).toHaveCount(0);
  await expect.poll(width).toBeGreaterThan(pressed);

  const whole = await width();
  await page.getByRole("button", { name: "Zoom in" }).click();
  await expect.poll(width).toBeGreaterThan(whole * 1.3);
  await api.post(`/runs/${id}/signals/go`, null);
  await expect(grid.getByRole("row", { name: /completed: last/ })).toBeVisible();
});

test.describe("a server that was killed", () => {
  test.use({ serverOptions: [], expected: disconnected });

  test("leaves its mark in the timeline: the attempt that it cost, and how long nobody worked", async ({
    page,
    api,
    server,
  }) => {
    const id = await api.launch("held");
    await expect
      .poll(async () => ((await api.get(`/runs/${id}/nodes`)) as { nodes: { status: string }[] }).nodes[0]?.status)
      .toBe("running");
    await server.stop("SIGKILL");
    await server.start();
    await page.goto(`/runs/${id}/timeline?node=both:work`);
    const legend = page.getByRole("list", { name: "Legend" });
    await expect(legend).toContainText("attempt lost with its process");
    await expect(legend).toContainText("server not running");
    await expect(legend.locator(".bar-down")).toHaveCSS("border-top-style", "solid");
    const grid = page.getByRole("treegrid", { name: "Timeline of the run" });
    await expect(grid.locator(".bar-lost")).toHaveCount(1);
    await expect(grid.locator(".bar-down")).toHaveCount(1);
    await api.post(`/runs/${id}/cancel`);
  });
});

test("a plan is drawn before anything has run", async ({ page }) => {
  await page.goto("/workflows/figures/plan");
  const graph = page.getByRole("region", { name: /^The plan as a graph/ });
  await expect(graph.getByText("notify")).toBeVisible();
  await expect(page.getByRole("region", { name: "The plan as a list" }).getByText("write")).toBeVisible();
});

for (const [scheme, width] of [
  ["dark", 1280],
  ["light", 390],
] as const)
  test(`axe finds nothing in cards and graphs, ${scheme}, ${width} pixels wide`, async ({ page, api }) => {
    test.slow(); // axe on a large page
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    const id = await api.launch("figures");
    for (const path of [
      `/runs/${id}/graph?node=flaky`,
      `/runs/${id}/timeline?node=gate`,
      `/runs/${id}/nodes?node=each`,
      "/workflows/figures/plan",
    ]) {
      await page.goto(path);
      await expect(page.getByText(/^Loading/)).toHaveCount(0);
      await expect(page.locator(".graph .box, .tree-row").first()).toBeVisible();
      await test.step(path, async () => {
        await expectAccessible(page);
        await expectNoSideScroll(page);
      });
    }
  });
