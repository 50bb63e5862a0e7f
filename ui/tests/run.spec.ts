import { readFileSync } from "node:fs";
import { disconnected, expect, refused, test } from "./fixture";

const status = ".run-facts";

test("a run is watched to its end without a reload, and approved by a signal", async ({ page, api }) => {
  const id = await api.launch("release", { version: "2.1" });
  await page.goto(`/runs/${id}`);
  await expect(page.locator(status)).toContainText("running");
  await expect(page.getByText("'answer' waits for the signal 'approval'")).toBeVisible();

  await page.getByRole("button", { name: "Other answer…" }).click();
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
  await expect(page.getByRole("group", { name: "the result of ship" })).toContainText("shipped 2.1");
});

test("an approval is one click, without a guess at its name", async ({ page, api }) => {
  const yes = await api.launch("release");
  await page.goto(`/runs/${yes}`);
  await page.getByRole("link", { name: "'answer'" }).click();
  await expect(page.getByRole("complementary", { name: "Node answer" })).toBeVisible();
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.locator(status)).toContainText("completed");
  expect(await api.result(yes, "answer")).toEqual({ approved: true });

  const no = await api.launch("talk");
  await page.goto(`/runs/${no}`);
  await page.getByRole("button", { name: "Reject" }).click();
  await expect(page.locator(status)).toContainText("completed");
  expect(await api.result(no, "gate")).toEqual({ approved: false });
});

test.describe("a signal with a schema", () => {
  test.use({ expected: refused(422) });

  test("is answered in its form", async ({ page, api }) => {
    const id = await api.launch("approve");
    await page.goto(`/runs/${id}`);
    const form = page.getByRole("form", { name: "Answer to decision" });
    await expect(form.getByLabel("approved")).toBeVisible();
    await expect(page.getByRole("button", { name: "Approve", exact: true })).toHaveCount(0);
    const asks = await page.getByText("waits for the signal 'decision'").boundingBox();
    const fields = await form.boundingBox();
    expect(fields!.y, "the fields are below what is asked").toBeGreaterThanOrEqual(asks!.y + asks!.height);
    await form.getByLabel("comment").fill("no");
    await form.getByRole("button", { name: "Send “decision”" }).click();
    await expect(form.getByText(/at least 3|shorter|minLength|characters/)).toBeVisible();
    expect(await api.status(id)).toBe("running");
    await form.getByLabel("approved").check();
    await form.getByLabel("comment").fill("looks right");
    await page.keyboard.press("Enter");
    await expect(page.locator(status)).toContainText("completed");
    expect(await api.result(id, "done")).toBe("looks right");
  });
});

test("the head stays where it is while a fan-out runs", async ({ page, api }) => {
  const id = await api.launch("waves", { items: 40 });
  await page.goto(`/runs/${id}`);
  await expect(page.getByRole("region", { name: /^Graph of the run/ })).toBeVisible();
  await page.evaluate(() => {
    const shifts = ((window as unknown as { shifts: number[] }).shifts = []);
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) (shifts as number[]).push((entry as unknown as { value: number }).value);
    }).observe({ type: "layout-shift", buffered: true });
  });
  await expect(page.locator(status)).toContainText("completed");
  await expect(page.getByText(/^Ended /)).toBeVisible();
  const shift = await page.evaluate(() =>
    (window as unknown as { shifts: number[] }).shifts.reduce((a, b) => a + b, 0),
  );
  console.log(`layout shift while a fan-out runs: ${shift.toFixed(4)}`);
  expect(shift).toBeLessThan(0.05);
  // One line: what, which, how it is, how long, since when.
  const line = await page.locator(".run-line").boundingBox();
  expect(line!.height).toBeLessThan(48);
  await expect(page.locator(status).locator("time")).toHaveText(/\d{4}, \d+:\d\d:\d\d/);
  // The tabs stay when the page is scrolled.
  await page.setViewportSize({ width: 1280, height: 300 });
  await page.mouse.wheel(0, 100_000);
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBeGreaterThan(100);
  await expect(page.getByRole("navigation", { name: "Parts of the run" })).toBeInViewport({ ratio: 1 });
});

test("what goes on is one line, which opens", async ({ page, api }) => {
  const id = await api.launch("held");
  await page.goto(`/runs/${id}`);
  const line = page.getByRole("region", { name: "Now" }).locator("summary");
  await expect(line).toHaveText(/1 running · 40 waiting for a time|40 waiting for a time · 1 running/);
  await line.click();
  await expect(page.getByRole("region", { name: "Now" }).getByRole("listitem")).toHaveCount(2);
  await api.post(`/runs/${id}/cancel`);
  await expect(page.getByText(/^Ended /)).toBeVisible();
});

test("a long error has its last line as the title, and all of it on request", async ({ page, api }) => {
  const id = await api.launch("traceback");
  await page.goto(`/runs/${id}`);
  const error = page.getByRole("group", { name: "Error of the run" });
  await expect(error.locator(".error-title")).toHaveText("ValueError: no such order: 4711");
  const text = error.locator("pre");
  await expect(text).toHaveCSS("font-family", /mono/i);
  await expect(error.getByRole("button", { name: /^Copy/ })).toBeVisible();
  const height = () => text.evaluate((pre) => pre.getBoundingClientRect().height);
  const rem = await page.evaluate(() => parseFloat(getComputedStyle(document.documentElement).fontSize));
  expect(await height()).toBeLessThanOrEqual(9 * rem + 1);
  await error.getByRole("button", { name: "Show all" }).click();
  expect(await height()).toBeGreaterThan(9 * rem);
  await expect(text).toContainText("line 1 of the trace");
  await page.setViewportSize({ width: 390, height: 800 });
  await error.getByRole("button", { name: "Show less" }).click();
  await expect(text).toBeHidden();
  await expect(error.locator(".error-title")).toBeVisible();
  await page.goto(`/runs?q=${id}`);
  await expect(page.getByRole("row", { name: new RegExp(id) })).toContainText("ValueError: no such order: 4711");
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
  await expect(page.getByRole("group", { name: "the result of hold" })).toContainText("held back");
});

test("why a run failed stands at its top", async ({ page, api }) => {
  const id = await api.launch("fail");
  await page.goto(`/runs/${id}`);
  await expect(page.locator(status)).toContainText("failed");
  await expect(page.getByRole("group", { name: "Error of the run" })).toContainText("no such luck");
  await page.getByRole("group", { name: "Error of the run" }).getByRole("link", { name: "bad" }).click();
  await expect(page.getByRole("complementary", { name: "Node bad" })).toContainText("no such luck");
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
    const dim = () => page.locator(".run-duration .clock").evaluate((clock) => Number(getComputedStyle(clock).opacity));
    await expect.poll(dim).toBeLessThan(1); // nobody knows how long it has been

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

test("a run whose id a browser cannot ask for is in the list, and its page says how to see it", async ({
  page,
  api,
}) => {
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
  await page.getByRole("combobox", { name: "Node" }).selectOption("alpha");
  await expect(page.getByText(/^1,500 lines|^500 lines, more below/)).toBeVisible();
  await expect(log.getByText("beta needle")).toHaveCount(0);
  await page.getByRole("combobox", { name: "Node" }).selectOption("");
  await page.getByLabel("Level").selectOption("error");
  await expect(page.getByText("No line matches")).toBeVisible();
  await page.getByLabel("Level").selectOption("info");

  await page.getByRole("checkbox", { name: "Follow" }).check();
  await api.post(`/runs/${id}/signals/go`, null);
  await expect(log.getByText("gamma says goodbye")).toBeVisible();
});

test("the log tells iterations, attempts, colours and what was fatal, and is downloaded", async ({ page, api }) => {
  const id = await api.launch("colours");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}/logs`);
  const log = page.getByRole("log");
  await expect(log.getByText(/^Started /)).toBeVisible();
  const green = log.locator(".log-line", { hasText: "item b" });
  await expect(green.locator(".ansi-green")).toHaveText("item b");
  await expect(green.locator(".log-iteration")).toHaveText("#2");
  const left = async (text: string) =>
    (await log.locator(".log-line", { hasText: text }).locator(".log-message").boundingBox())!.x;
  expect(await left("second try"), "messages are below each other").toBe(await left("item b"));
  await expect(log.locator(".log-line", { hasText: "second try" })).toContainText("attempt 2");
  await expect(log.locator(".log-line.level-error", { hasText: "second try" })).toBeVisible();
  await expect(log.locator(".log-line.level-error", { hasText: "first try" })).toHaveCount(0);
  await expect(log.getByText("Failed", { exact: true })).toBeVisible();
  const box = await log.boundingBox();
  expect(box!.y + box!.height).toBeLessThanOrEqual(800);

  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe(`${id}.log`);
  const text = readFileSync(await saved.path(), "utf8");
  expect(text).toContain("each:iter1:node0:say: item b\n");
  expect(text).toContain("bad (attempt 2): second try");
});
