/* screens.ts: pictures of every page for docs/screens.md: desktop and phone, light and dark, made with a real
 * server, so that they show what there is. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Page } from "@playwright/test";
import { expect, refused, withMembers, type Api } from "./fixture";
import { test } from "./model";

const OUT = path.join(import.meta.dirname, "../../docs/screens");

interface Screen {
  name: string;
  path: (ids: Record<string, string>) => string;
  /** What is done before the page is opened. */
  before?: (page: Page) => Promise<void>;
  /** What is done before the picture. */
  act?: (page: Page) => Promise<void>;
  /** in these looks only */
  looks?: string[];
}

const CULPRIT = "tables:iter1:node0:rows:iter3:node0:insert:then:node0:reject";
const TWO = ["desktop-light", "phone-dark"];

const SCREENS: Screen[] = [
  { name: "home", path: () => "/" },
  { name: "workflows", path: () => "/workflows" },
  {
    name: "launch",
    path: () => "/workflows/greet",
    act: async (page) => {
      await page.getByLabel(/^name/).fill("A");
      await page.getByRole("button", { name: "Launch" }).click();
      await expect(page.getByText("refuses this input")).toBeVisible();
    },
  },
  { name: "plan", path: () => "/workflows/order/plan" },
  { name: "runs", path: () => "/runs" },
  { name: "graph", path: (ids) => `/runs/${ids.order}/graph` },
  { name: "timeline", path: (ids) => `/runs/${ids.order}/timeline` },
  { name: "nodes", path: (ids) => `/runs/${ids.order}/nodes` },
  { name: "logs", path: (ids) => `/runs/${ids.order}/logs` },
  { name: "data", path: (ids) => `/runs/${ids.order}/data` },
  { name: "card", path: (ids) => `/runs/${ids.order}/graph?node=pay`, looks: TWO },
  { name: "suspended", path: (ids) => `/runs/${ids.suspended}`, looks: TWO },
  { name: "failed", path: (ids) => `/runs/${ids.broken}/timeline?node=bad`, looks: TWO },
  { name: "culprit", path: (ids) => `/runs/${ids.nested}/nodes?node=${CULPRIT}`, looks: [...TWO, "wide-dark"] },
  { name: "history", path: (ids) => `/runs/${ids.nested}/history`, looks: TWO },
  { name: "approve", path: (ids) => `/runs/${ids.approve}`, looks: TWO },
  { name: "stages", path: (ids) => `/runs/${ids.weather}/graph`, looks: TWO },
  { name: "decision", path: (ids) => `/runs/${ids.critical}`, looks: TWO },
  { name: "attachments", path: (ids) => `/runs/${ids.weather}/attachments`, looks: TWO },
  { name: "large", path: (ids) => `/runs/${ids.big}/graph`, looks: TWO },
  { name: "chat", path: (ids) => `/runs/${ids.chat}/chat`, looks: TWO },
  { name: "members", path: () => "/members", before: withMembers, looks: TWO },
  {
    name: "signal",
    path: (ids) => `/runs/${ids.release}`,
    act: async (page) => page.getByRole("button", { name: "Other answer…" }).click(),
  },
];

const LOOKS = [
  { name: "desktop-light", width: 1280, height: 800, scheme: "light" },
  { name: "desktop-dark", width: 1280, height: 800, scheme: "dark" },
  { name: "phone-light", width: 390, height: 780, scheme: "light" },
  { name: "phone-dark", width: 390, height: 780, scheme: "dark" },
  { name: "wide-dark", width: 1920, height: 1080, scheme: "dark" },
] as const;

/** Of the widest look only where it is asked for. */
const isShown = (screen: Screen, look: string) => (screen.looks ? screen.looks.includes(look) : look !== "wide-dark");

const QUALITY = 72;
/** For what comes by the stream, and layouts: there is no event for "looks finished". */
const SETTLE_MS = 700;

/** WebP, which Playwright's own screenshots cannot be. */
async function picture(page: Page, file: string): Promise<void> {
  const browser = await page.context().newCDPSession(page);
  const { data } = await browser.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  writeFileSync(file, Buffer.from(data, "base64"));
  await browser.detach();
}

/** Runs in every status, the newest of them worth looking at. */
async function scene(api: Api): Promise<Record<string, string>> {
  const broken = await api.launch("fail", undefined, "nightly-0412");
  const cancelled = await api.launch("release", { version: "1.9" }, "release-1.9");
  await api.post(`/runs/${cancelled}/cancel`);
  for (let i = 1; i <= 6; i++) await api.launch("greet", { name: "Ada", people: [{ age: 36 }] }, `greeting-${i}`);
  const big = await api.launch("big", { items: 10_000 }, "reindex-17");
  const nested = await api.launch("nested", { tables: 3, rows: 40 }, "import-88");
  const approve = await api.launch("approve", undefined, "contract-12");
  const suspended = await api.launch("fragile", undefined, "invoice-2088");
  await api.post(`/runs/${suspended}/signals/go`, null);
  const weather = await api.launch("weather", undefined, "weather-7");
  await expect.poll(() => api.status(weather)).toBe("completed");
  rmSync(path.join(FLOWS, "weather/stations"), { recursive: true }); // the next one asks what to do
  const critical = await api.launch("weather", undefined, "weather-8");
  const chat = await api.launch("support", { question: "1 + 2" }, "question-31");
  await expect.poll(async () => JSON.stringify(await api.get(`/runs/${chat}/why`))).toContain("approve:");
  const release = await api.launch("release", { version: "2.0" }, "release-2.0");
  const order = await api.launch("order", { customer: "Ada", items: ["kettle", "tea", "cups"] }, "order-4711");
  await expect.poll(() => api.status(broken)).toBe("failed");
  await expect.poll(() => api.status(suspended)).toBe("suspended");
  await expect.poll(() => api.status(critical)).toBe("suspended");
  await expect.poll(() => api.status(big)).toBe("completed");
  await expect.poll(async () => JSON.stringify(await api.get(`/runs/${order}/why`))).toContain("receipt");
  return { release, order, big, broken, suspended, nested, approve, weather, critical, chat };
}

/** The workflows of all folders, one of which is in C and takes its process with it, and the manifests. */
const FLOWS = mkdtempSync(path.join(tmpdir(), "rival-screens-"));
for (const folder of ["workflows", "workflows-c", "workflows-chat", "../../examples/manifests"])
  cpSync(path.join(import.meta.dirname, folder), FLOWS, { recursive: true });
test.afterAll(() => rmSync(FLOWS, { recursive: true, force: true }));

test.use({ workflows: FLOWS, expected: refused(422) });

test("screens", async ({ browser, server, api }) => {
  test.setTimeout(600_000);
  mkdirSync(OUT, { recursive: true });
  const ids = await scene(api);
  for (const look of LOOKS) {
    const context = await browser.newContext({
      baseURL: server.url,
      viewport: { width: look.width, height: look.height },
      colorScheme: look.scheme,
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    for (const screen of SCREENS) {
      if (!isShown(screen, look.name)) continue;
      await screen.before?.(page);
      await page.goto(screen.path(ids));
      await expect(page.getByRole("heading").first()).toBeVisible();
      await expect(page.getByText(/^Loading/)).toHaveCount(0);
      await screen.act?.(page);
      await page.waitForTimeout(SETTLE_MS);
      await picture(page, path.join(OUT, `${screen.name}-${look.name}.webp`));
    }
    await context.close();
  }
});
