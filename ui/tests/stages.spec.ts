/* stages.spec.ts: runs of manifests, those of examples/ and one of this folder: their columns, their schedule as it
 * goes, decisions, attachments. Each test has a copy of the files, whose scripts it may hold up or break. */
import { chmodSync, cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Page } from "@playwright/test";
import { expect, expectAccessible, expectNoSideScroll, test as base } from "./fixture";

const HERE = import.meta.dirname;

const test = base.extend({
  workflows: async ({}, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "rival-ui-manifests-"));
    cpSync(path.join(HERE, "../../examples/manifests"), folder, { recursive: true });
    cpSync(path.join(HERE, "manifests"), folder, { recursive: true });
    await use(folder);
    rmSync(folder, { recursive: true });
  },
});

const graphOf = (page: Page) => page.getByRole("region", { name: /^Graph of the run/ });
const board = (page: Page, stage: string) => page.getByRole("region", { name: `Schedule of the stage ${stage}` });
const waits = (page: Page) => page.getByRole("region", { name: "Waits for a decision" });
const tab = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Parts of the run" }).getByRole("link", { name });

/** A script of the examples that goes on once there is a file `go` beside it. */
function hold(folder: string, script: string): void {
  const file = path.join(folder, script);
  renameSync(file, `${file}.really`);
  writeFileSync(
    file,
    `#!/bin/sh\nuntil test -e go; do sleep 0.05; done\nexec "./${path.basename(file)}.really" "$@"\n`,
  );
  chmodSync(file, 0o755);
}

test("stages are columns, states cards with priority and attempts, dependencies arrows", async ({ page, api }) => {
  const id = await api.launch("weather");
  await page.goto(`/runs/${id}`);
  await expect(page.locator(".run-facts")).toContainText("completed");
  const graph = graphOf(page);
  const box = async (key: string) => (await graph.locator(`.react-flow__node[data-id="${key}"]`).boundingBox())!;
  const [triage, report, prepare, gather, say] = [
    await box("triage"),
    await box("report"),
    await box("triage:prepare"),
    await box("triage:gather_hill"),
    await box("report:say"),
  ];
  expect(report.x, "a column beside the other").toBeGreaterThan(triage.x + triage.width);
  expect(say.x).toBeGreaterThan(report.x);
  expect(gather.y, "below what it depends on").toBeGreaterThan(prepare.y + prepare.height);

  const card = graph.locator('.react-flow__node[data-id="triage:prepare"]');
  await expect(card).toContainText("300");
  await expect(card).toContainText("critical");
  await expect(graph.locator('.react-flow__node[data-id="report:say"]')).toContainText("final");
  await expect(graph.locator('.react-flow__node[data-id="triage:gather_hill"]')).toContainText("2 attempts");
  for (const edge of [
    "triage:prepare triage:gather_hill",
    "triage:prepare triage:repair",
    "triage:gather_lake report:say",
    "triage:gather_hill triage:repair dashed",
  ])
    await expect(graph.locator(`.react-flow__edge[data-id="${edge}"]`), edge).toHaveCount(1);

  await graph.getByRole("button", { name: "completed: gather_hill" }).click();
  const about = page.getByRole("complementary", { name: "Node triage:gather_hill" });
  await expect(about).toContainText("Depends on");
  await expect(about).toContainText("triage › prepare");
  const left = about.getByRole("region", { name: "Attachments" }).getByRole("listitem");
  await expect(left.filter({ hasText: "attempt 1" })).toContainText("not a number: broken");
  await expect(left.filter({ hasText: "attempt 2" })).toContainText("finished");
  await expectAccessible(page);
});

test("the schedule is told as it goes: blocked, ready, in the pool, settled", async ({ page, api, workflows }) => {
  hold(workflows!, "aggregate/parse.sh");
  const id = await api.launch("aggregate");
  await page.goto(`/runs/${id}`);
  const list = (name: string) => board(page, "executing").getByRole("group", { name });
  await expect(list("Settled")).toContainText("validator");
  await expect(list("In the pool")).toContainText("parser");
  await expect(list("Blocked")).toContainText("aggregator");
  await expect(list("Ready")).toContainText("none");
  writeFileSync(path.join(workflows!, "aggregate/go"), "");
  for (const name of ["validator", "parser", "aggregator"]) await expect(list("Settled")).toContainText(name);
  await expect(list("Blocked")).toContainText("none");
  await expect(list("In the pool")).toContainText("none");
});

test("what is ready waits by priority while the pool is full", async ({ page, api, workflows }) => {
  hold(workflows!, "weather/gather.sh");
  hold(workflows!, "weather/repair.sh");
  const run = (await api.post("/workflows/weather/runs", { maxConcurrency: 1 })) as { runId: string };
  await page.goto(`/runs/${run.runId}`);
  const list = (name: string) => board(page, "triage").getByRole("group", { name });
  await expect(list("Settled")).toContainText("prepare");
  await expect(list("In the pool")).toContainText("repair");
  await expect(list("Ready").getByRole("listitem")).toContainText(["gather_lake", "gather_hill"]);
  writeFileSync(path.join(workflows!, "weather/go"), "");
  await expect(page.locator(".run-facts")).toContainText("completed");
});

test("a critical state that failed is decided with its log and attachment in view", async ({
  page,
  api,
  workflows,
}) => {
  renameSync(path.join(workflows!, "weather/stations"), path.join(workflows!, "weather/elsewhere"));
  const id = await api.launch("weather");
  await page.goto(`/runs/${id}`);
  const panel = waits(page).getByRole("region", { name: "Decide about triage › prepare" });
  await expect(panel).toContainText("the critical state 'prepare' failed");
  await expect(panel.getByRole("region", { name: "Log of this node" })).toContainText("cannot stat");
  const attachment = panel.getByRole("region", { name: "Attachments" });
  await expect(attachment).toContainText("errored");
  await expect(attachment.getByRole("group", { name: "Error in the attachment" })).toContainText("exit code 1");
  await expect(panel.getByRole("button")).toContainText(["Resume…", "Skip…", "Restart stage…", "Abort…"]);
  await expectAccessible(page);

  renameSync(path.join(workflows!, "weather/elsewhere"), path.join(workflows!, "weather/stations"));
  await panel.getByRole("button", { name: "Restart stage…" }).click();
  await page.getByLabel(/^Reason/).fill("the readings are back");
  await page.getByRole("button", { name: "Restart the stage" }).click();
  await expect(page.locator(".run-facts")).toContainText("completed");
  await expect(waits(page)).toHaveCount(0);

  await tab(page, "Attachments").click();
  const rows = page.getByRole("row");
  await expect(rows.filter({ hasText: "superseded" })).toHaveCount(1);
  await expect(rows.filter({ hasText: "triage › prepare" })).toHaveCount(2);
  await rows.filter({ hasText: "superseded" }).getByRole("button").click();
  const old = page.getByRole("complementary", { name: /^Attachment \[triage\]\[prepare\]/ });
  await expect(old).toContainText("Its stage was begun anew");
  await expect(old.getByRole("group", { name: "Error in the attachment" })).toContainText("cannot stat");
  await rows.filter({ hasText: "report › say" }).getByRole("button").click();
  await expect(page.getByRole("complementary", { name: /^Attachment \[report\]\[say\]/ })).toContainText("degrees.");
  await expectAccessible(page);
  await page.getByLabel("Status").selectOption("errored");
  await expect(rows.filter({ hasText: "report › say" })).toHaveCount(0);
  await expect(rows.filter({ hasText: "triage › prepare" })).toHaveCount(1);
  // All of it is in the address.
  await page.reload();
  await expect(rows.filter({ hasText: "triage › prepare" })).toHaveCount(1);
  await expect(page.getByRole("complementary", { name: /^Attachment \[report\]\[say\]/ })).toBeVisible();
});

test("several that wait are decided at once, by their paths", async ({ page, api, workflows }) => {
  const id = await api.launch("pair");
  await page.goto(`/runs/${id}`);
  const pool = board(page, "work").getByRole("group", { name: "In the pool" });
  for (const name of ["upper", "lower"]) await expect(pool).toContainText(name);
  writeFileSync(path.join(workflows!, "go"), "");
  await expect(waits(page)).toContainText("2 wait for a decision");
  const upper = waits(page).getByRole("region", { name: "Decide about work › upper" });
  await upper.getByText("Log and attachment").click();
  await expect(upper.getByRole("region", { name: "Log of this node" })).toContainText("upper is not good");

  await waits(page).getByLabel("all").check();
  const group = waits(page).getByRole("group", { name: "Decide for those that are marked" });
  await group.getByRole("button", { name: "Skip…" }).click();
  await page.getByLabel(/^Reason/).fill("nobody needs these");
  await page.getByRole("button", { name: "Skip it" }).click();
  await expect(page.locator(".run-facts")).toContainText("completed");
  await expect(graphOf(page).getByRole("button", { name: "failed: upper" })).toBeVisible();
  await expect(graphOf(page).getByRole("button", { name: "failed: lower" })).toBeVisible();
  await expect(graphOf(page).getByRole("button", { name: "completed: after" })).toBeVisible();
  const decided = (await api.text(`/runs/${id}/history`)).match(/"decision":"skip"/g);
  expect(decided).toHaveLength(2);
});

test("one of several is resumed and the other aborted", async ({ page, api, workflows }) => {
  const id = await api.launch("pair");
  await page.goto(`/runs/${id}`);
  const pool = board(page, "work").getByRole("group", { name: "In the pool" });
  for (const name of ["upper", "lower"]) await expect(pool).toContainText(name);
  writeFileSync(path.join(workflows!, "go"), "");
  await expect(waits(page)).toContainText("2 wait for a decision");
  const of = (name: string) => waits(page).getByRole("region", { name: `Decide about work › ${name}` });
  writeFileSync(path.join(workflows!, "good"), "");
  await of("upper").getByRole("button", { name: "Resume…" }).click();
  await page.getByRole("button", { name: "Resume the run" }).click();
  await expect(of("upper")).toHaveCount(0);
  await of("lower").getByRole("button", { name: "Abort…" }).click();
  await page.getByLabel(/^Reason/).fill("enough");
  await page.getByRole("button", { name: "Abort the run" }).click();
  await expect(page.locator(".run-facts")).toContainText("failed");
});

test.describe("at the width of a phone", () => {
  test.use({ viewport: { width: 390, height: 844 } });

  test("the list of attachments has their descriptions", async ({ page, api }) => {
    const id = await api.launch("weather");
    await expect.poll(() => api.status(id)).toBe("completed");
    await page.goto(`/runs/${id}/attachments`);
    const row = page.getByRole("row", { name: /report › say/ });
    const described = row.getByRole("cell").filter({ hasText: /degrees/ });
    await expect(described).toBeVisible();
    const [above, below] = [await row.getByRole("button").boundingBox(), await described.boundingBox()];
    expect(below!.y, "it is on a line of its own").toBeGreaterThanOrEqual(above!.y + above!.height);
    expect(below!.width).toBeGreaterThan(250);
    await expectNoSideScroll(page);
    await expectAccessible(page);
  });

  test("stages stand one below the other, and nothing sticks out", async ({ page, api, workflows }) => {
    renameSync(path.join(workflows!, "weather/stations"), path.join(workflows!, "weather/elsewhere"));
    const id = await api.launch("weather");
    await page.goto(`/runs/${id}`);
    await expect(waits(page)).toContainText("cannot stat");
    await expect(board(page, "triage")).toContainText("prepare");
    const graph = graphOf(page);
    const box = async (key: string) => (await graph.locator(`.react-flow__node[data-id="${key}"]`).boundingBox())!;
    expect((await box("report")).y).toBeGreaterThan((await box("triage")).y);
    await expectNoSideScroll(page);
    await tab(page, "Attachments").click();
    await expect(page.getByRole("row", { name: /triage › prepare/ })).toBeVisible();
    await expectNoSideScroll(page);
  });
});
