/* What the pages ask for, and what it costs. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Page } from "@playwright/test";
import { expect, test } from "./fixture";

const MEASURED = "rival graph layout";

const layouts = (page: Page) =>
  page.evaluate((name) => performance.getEntriesByName(name).map((entry) => entry.duration), MEASURED);

test("the types of the documents are those that the server describes", async ({ server, request }) => {
  const { typesOf } = await import("../scripts/api-types.mjs");
  const described = await typesOf(await (await request.get(`${server.url}/openapi.json`)).json());
  const kept = readFileSync(path.join(import.meta.dirname, "../src/api/generated.ts"), "utf8");
  expect(kept === described, "run `npm run api-types`").toBe(true);
});

test("a graph is laid out when a box opens, not when a status changes", async ({ page, api }) => {
  const id = await api.launch("waves", { items: 20 });
  await page.goto(`/runs/${id}`);
  await expect(page.locator(".run-facts")).toContainText("completed");
  const before = (await layouts(page)).length;
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThanOrEqual(4); // React draws twice in its strict mode, and the plan comes after the page
  await page.getByRole("button", { name: "Close each" }).click();
  await expect.poll(async () => (await layouts(page)).length).toBeGreaterThan(before);
});

test.describe("a plan of two thousand nodes", () => {
  test.use({ serverOptions: [] });

  test("is drawn within its budget", async ({ page, server }) => {
    const steps = Array.from({ length: 200 }, (_, i) => {
      const inner = Array.from({ length: 9 }, (_, k) => `{ s${k}: { value: ${k} } }`).join(", ");
      return `  - c${i}: { concurrent: [${inner}] }\n`;
    });
    const folder = path.join(server.folder, "flows");
    mkdirSync(folder);
    writeFileSync(path.join(folder, "wide.yaml"), `name: wide\nsteps:\n${steps.join("")}`);
    await server.stop();
    server.workflows = folder;
    await server.start();
    await page.goto("/workflows/wide/plan");
    await expect(page.getByRole("region", { name: /^The plan as a graph/ })).toContainText("c0");
    const times = await layouts(page);
    console.log(`layout of 2,000 nodes: ${Math.round(Math.max(...times))} ms`); // judged by the unit test, in processor time
    expect(await page.locator(".react-flow__node").count()).toBeLessThan(400);
  });
});

test("results are read node by node, attempts without their values", async ({ page, api }) => {
  const id = await api.launch("figures");
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url().split("/api/v1")[1] ?? ""));
  await page.goto(`/runs/${id}/data`);
  await expect(page.getByRole("group", { name: "the result of flaky" })).toHaveText("7");
  const attempts = page.waitForRequest((request) => request.url().includes("/node?path=flaky&results=0"));
  await page.getByRole("link", { name: "Timeline" }).click();
  await attempts;
  await expect(page.getByRole("row", { name: /flaky/ }).locator(".bar-retry").first()).toBeVisible();
  expect(asked.filter((url) => url.startsWith(`/runs/${id}?`))).not.toEqual([]);
  expect(
    asked.filter(
      (url) => url.startsWith(`/runs/${id}`) && /^\/runs\/[^/?]+(\?|$)/.test(url) && !url.includes("results=0"),
    ),
  ).toEqual([]);
  const timeline = asked.slice(asked.findIndex((url) => url.includes("/node?path=flaky&results=0")));
  expect(timeline.length).toBeGreaterThan(0);
  expect(timeline.filter((url) => url.includes("/node?") && !url.includes("results=0"))).toEqual([]);
});

test.describe("what breaks one view", () => {
  test.use({ expected: /error: / });

  test("is left behind with it", async ({ page, api }) => {
    const id = await api.launch("greet", { name: "Ada", people: [{ age: 1 }] });
    await page.route(`**/runs/${id}/plan`, (route) => route.fulfill({ json: { name: "x", steps: "none" } }));
    await page.goto(`/runs/${id}/graph`);
    await expect(page.getByRole("alert").filter({ hasText: "Something went wrong in this page" })).toBeVisible();
    await page.unroute(`**/runs/${id}/plan`);
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Runs" }).click();
    await expect(page.getByRole("heading", { name: "Runs" })).toBeVisible();
    await expect(page.getByText("Something went wrong in this page")).toHaveCount(0);
  });
});

test.describe("a refusal", () => {
  test.use({ serverOptions: [], expected: /the server responded with a status of 5/ });

  test("is an alert that stays until it is closed", async ({ page, api }) => {
    await api.launch("release", {}, "mine");
    await page.goto("/runs");
    await page.route("**/api/v1/runs/**", (route) =>
      route.request().method() === "POST"
        ? route.fulfill({
            status: 500,
            json: { type: "about:blank", title: "No", status: 500, detail: "the disk is full" },
          })
        : route.fallback(),
    );
    await page.clock.install();
    await page.getByRole("checkbox", { name: "Select mine" }).check();
    await page.getByRole("button", { name: /^Cancel/ }).click();
    await page.getByRole("button", { name: "Cancel them" }).click();
    const alert = page.getByRole("alert").filter({ hasText: "the disk is full" });
    await expect(alert).toBeVisible();
    await page.clock.fastForward(60_000);
    await expect(alert).toBeVisible();
    await page.keyboard.press("Escape"); // the question
    await alert.getByRole("button", { name: "Dismiss" }).click();
    await expect(alert).toHaveCount(0);
  });
});

test.describe("a wide screen", () => {
  test.use({ viewport: { width: 1920, height: 1080 } });

  test("is used", async ({ page, api }) => {
    const id = await api.launch("greet", { name: "Ada", people: [{ age: 1 }] });
    for (const where of ["/runs", `/runs/${id}`, `/runs/${id}/nodes`]) {
      await page.goto(where);
      await expect(page.getByRole("heading").first()).toBeVisible();
      expect((await page.getByRole("main").boundingBox())!.width).toBeGreaterThan(1800);
    }
  });
});
