import { readFileSync } from "node:fs";
import { expect, test } from "./fixture";

test.describe("home", () => {
  test.use({ serverOptions: [] });

  test("tells what needs somebody, what fails, what is slow and how the server is, live", async ({ page, api }) => {
    await page.goto("/");
    const part = (name: string) => page.getByRole("region", { name });
    // On an empty store there is a way to a first launch.
    await part("Nothing has run yet").getByRole("link", { name: "Choose a workflow to launch" }).click();
    await page.getByRole("link", { name: "any.json", exact: true }).click();
    await expect(page.getByRole("button", { name: "Launch" })).toBeVisible();
    await page.goto("/");
    await expect(part("Needs somebody")).toContainText("Nothing waits for anybody.");
    await expect(part("What fails")).toContainText("Nothing failed.");
    const older = await api.launch("release", { version: "1" }, "older");
    await api.launch("release", { version: "2" }, "newer");
    for (let i = 0; i < 3; i++) await api.launch("fail");
    await api.launch("any.json", 1, "quick");
    await expect(part("Nothing has run yet")).toHaveCount(0);
    const waiting = part("Needs somebody").getByRole("listitem");
    await expect(waiting).toHaveCount(2);
    await expect(waiting.first()).toContainText("older");
    await expect(part("What fails").getByRole("listitem")).toContainText("3 of 3 failed");
    await expect(part("What fails")).toContainText("100 %");
    await expect(part("What is slow").getByRole("listitem")).toContainText("any.json");
    await expect(part("Store and engine")).toContainText(/Runs under way\s*2/);
    await expect(part("Store and engine")).toContainText(/Store\s*\d+(\.\d)? KB/);
    await api.post(`/runs/${older}/signals/approval`, { approved: true });
    await expect(waiting).toHaveCount(1);
    await waiting.getByRole("link").click();
    await expect(page).toHaveURL(/\/runs\/newer$/);
    await page.goto("/");
    await part("What fails").getByRole("link", { name: "fail", exact: true }).click();
    await expect(page.getByRole("row")).toHaveCount(4);
  });

  test("the list has a chip for what waits for somebody, and tells runs apart by their input", async ({
    page,
    api,
  }) => {
    await api.launch("release", { version: "4711" }, "waits");
    await api.launch("any.json", { customer: "Ada" }, "done");
    await page.goto("/runs");
    await expect(page.getByRole("row", { name: /done/ })).toContainText('{"customer":"Ada"}');
    await page.getByRole("link", { name: "waiting for somebody" }).click();
    await expect(page.getByRole("row")).toHaveCount(2);
    await expect(page.getByRole("row").last()).toContainText("4711");
    await expect(page).toHaveURL(/waiting=somebody/);
    await api.post("/runs/waits/signals/approval", { approved: true });
    await expect(page.getByRole("heading", { name: "No run matches" })).toBeVisible();
  });
});

test("a run that is run again with another input is linked to the first, and back", async ({ page, api }) => {
  const first = await api.launch("any.json", { n: 1 });
  await expect.poll(() => api.status(first)).toBe("completed");
  await page.goto(`/runs/${first}`);
  await page.getByRole("link", { name: "Run again…" }).click();
  await page.getByLabel("Input, as JSON").fill('{"n": 2}');
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.getByText("Repeats")).toBeVisible();
  const second = new URL(page.url()).pathname.split("/")[2]!;
  expect(second).not.toBe(first);
  await page.getByRole("link", { name: first }).click();
  await expect(page).toHaveURL(new RegExp(`/runs/${first}$`));
  await expect(page.getByText("Run again as")).toContainText(second);
});

test("the history of a run is read, and saved", async ({ page, api }) => {
  const id = await api.launch("nested");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}/history`);
  const events = page.getByRole("group", { name: "Events of the run" });
  await expect(events.getByRole("listitem").first()).toContainText("run.started");
  const failed = events.getByRole("listitem").filter({ hasText: "step.failed" });
  await events.press("End");
  await expect(failed).toContainText("tables #2 › rows #4 › insert › reject");
  await expect(failed).toContainText("duplicate key 13");
  await expect(events.getByRole("listitem").last()).toContainText("run.failed");
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe(`${id}.events.jsonl`);
  const lines = readFileSync(await saved.path(), "utf8")
    .trimEnd()
    .split("\n");
  expect((JSON.parse(lines[0]!) as { kind: string }).kind).toBe("run.started");
  await expect(page.getByRole("status").filter({ hasText: `${lines.length} events` })).toBeVisible();
});
