/* From a failed run to what failed in it. */
import { expect, test } from "./fixture";

test("a failed run leads to the node that failed, in each view", async ({ page, api }) => {
  const id = await api.launch("nested");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}`);
  const way = page
    .getByRole("group", { name: "Error of the run" })
    .getByRole("link", { name: "tables #2 › rows #4 › insert › reject" });
  await expect(way).toBeVisible();
  // Before anything is clicked, the graph shows the iterations that failed.
  const graph = page.getByRole("region", { name: /^Graph of the run/ });
  await expect(graph.getByRole("button", { name: "failed: reject" })).toBeVisible();
  await expect(graph.getByRole("button", { name: "#2 of 3" })).toBeVisible();
  await expect(graph.getByRole("button", { name: "#4 of 5" })).toBeVisible();
  await way.click();
  const card = page.getByRole("complementary", { name: /^Node tables:iter1:/ });
  await expect(card.getByRole("group", { name: "Error" })).toContainText("duplicate key 13");
  for (const tab of ["Timeline", "Nodes"]) {
    await page.getByRole("navigation", { name: "Parts of the run" }).getByRole("link", { name: tab }).click();
    await expect(page.getByRole("row", { name: /reject/, selected: true })).toBeVisible();
    await expect(card).toBeVisible();
  }
  // Beside the card, too, names are whole.
  for (const name of ["rows", "insert", "reject"]) {
    const alias = page.getByRole("treegrid").getByText(name, { exact: true }).first();
    expect(await alias.evaluate((e) => e.scrollWidth - e.clientWidth), `pixels cut off ${name}`).toBe(0);
  }
  for (const tab of ["timeline", "nodes"]) {
    await page.goto(`/runs/${id}/${tab}`);
    await expect(page.getByRole("row", { name: /reject/ })).toBeVisible();
  }
  // What was unfolded on the way can be folded by one click.
  const rows = page.getByRole("row", { name: /failed: rows/ });
  await expect(rows).toHaveAttribute("aria-expanded", "true");
  await rows.getByRole("button", { name: "Close rows" }).click();
  await expect(page.getByRole("row", { name: /reject/ })).toHaveCount(0);
});

test("of five thousand nested iterations the culprit is two clicks away, at a bounded price", async ({ page, api }) => {
  test.slow(); // to make them
  const id = await api.launch("nested", { tables: 10, rows: 500 });
  await expect.poll(() => api.status(id), { timeout: 120_000 }).toBe("failed");
  await page.goto("/runs");
  await expect(page.getByRole("link", { name: id })).toBeVisible();
  // Seconds are a matter of the machine (and told); what has to be asked for is not.
  let requests = 0;
  let bytes = 0;
  page.on("requestfinished", (request) => {
    if (!request.url().includes("/api/") || request.url().includes("/events")) return;
    requests++;
    void request.sizes().then(({ responseBodySize }) => (bytes += responseBodySize));
  });
  const begun = Date.now();
  await page.getByRole("link", { name: id }).click();
  await page
    .getByRole("group", { name: "Error of the run" })
    .getByRole("link", { name: /rows #4/ })
    .click();
  const card = page.getByRole("complementary", { name: /^Node tables:iter1:/ });
  await expect(card.getByRole("group", { name: "Error" })).toContainText("duplicate key 13");
  await expect(card.getByRole("group", { name: "the input" })).toContainText("duplicate key 13"); // its argv
  await expect(card.getByRole("region", { name: "Log of this node" })).toContainText("duplicate key 13");
  const took = Date.now() - begun;
  console.log(`the culprit of 5,000: two clicks, ${took} ms, ${requests} requests, ${bytes} bytes`);
  expect(requests).toBeLessThan(40);
  expect(bytes).toBeLessThan(300_000);
});

test("iterations are a table: by status, by number, with why they failed", async ({ page, api }) => {
  const id = await api.launch("some", { items: 2000 });
  await expect.poll(() => api.status(id)).toBe("completed");
  await page.goto(`/runs/${id}/nodes?node=each`);
  const table = page.getByRole("region", { name: "Iterations" });
  await expect(table.getByRole("button", { name: "failed 2", exact: true })).toHaveAttribute("aria-pressed", "true");
  await expect(table.getByRole("listitem")).toHaveCount(2);
  await expect(table.getByRole("listitem").last()).toContainText("#1,235");
  await expect(table.getByRole("listitem").last()).toContainText("no luck with 1234");
  await expect(table.getByRole("listitem").last()).toContainText("order 1234");
  await table.getByRole("button", { name: "all 2,000", exact: true }).click();
  await table.getByLabel("Go to").fill("1999");
  await table.getByRole("button", { name: "Go", exact: true }).click();
  await table.getByRole("button", { name: /#1,999/ }).click();
  await expect(page.getByRole("complementary", { name: "Node each:iter1998" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "#1,999 · order 1998" })).toBeVisible();
});

test("the picker of a graph lists the iterations by status, with why they failed", async ({ page, api }) => {
  const id = await api.launch("some", { items: 2000 });
  await expect.poll(() => api.status(id)).toBe("completed");
  await page.goto(`/runs/${id}/graph`);
  await page.getByRole("button", { name: /of 2,000$|^latest: #2,000|^#/ }).click();
  const picker = page.getByRole("dialog", { name: "Iterations of each" });
  await expect(picker.getByRole("button", { name: "all 2,000", exact: true })).toBeVisible();
  await picker.getByRole("button", { name: "failed 2", exact: true }).click();
  await expect(picker.getByRole("listitem")).toHaveCount(2);
  await expect(picker.getByRole("listitem").last()).toContainText("no luck with 1234");
  await picker.getByRole("button", { name: /^#1,235/ }).click();
  await expect(page.getByRole("button", { name: "#1,235 of 2,000" })).toBeVisible();
});

test("a card tells the error, the input, the result, the attempts and the log, in this order", async ({
  page,
  api,
}) => {
  const failed = await api.launch("colours");
  await expect.poll(() => api.status(failed)).toBe("failed");
  const card = page.getByRole("complementary");
  const tops = async (parts: string[]) => {
    for (const part of parts) await expect(card.locator(part).first()).toBeVisible();
    return Promise.all(
      parts.map((part) =>
        card
          .locator(part)
          .first()
          .evaluate((e) => e.getBoundingClientRect().top),
      ),
    );
  };
  const rising = (all: number[]) => all.every((each, i) => i === 0 || each > all[i - 1]!);
  await page.goto(`/runs/${failed}/nodes?node=bad`);
  const said = ['[role="group"][aria-label="Error"]', '[aria-label="the input"]', ".node-attempts", ".node-log"];
  expect(rising(await tops(said))).toBe(true);
  const done = await api.launch("figures");
  await page.goto(`/runs/${done}/nodes?node=flaky`);
  expect(rising(await tops(['[aria-label="the input"]', '[aria-label="the result"]', ".node-attempts"]))).toBe(true);
});

test("without a label an iteration is known by its item", async ({ page, api }) => {
  const id = await api.launch("nested");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}/nodes?node=tables:iter1:node0:rows`);
  await expect(page.getByRole("row", { name: /failed: #2/ })).toContainText("1");
  const card = page.getByRole("complementary", { name: "Node tables:iter1:node0:rows" });
  await expect(card.getByRole("listitem").first()).toContainText("row 3 of 1");
  await page.goto(`/runs/${id}/nodes?node=tables`);
  const failed = page.getByRole("region", { name: "Iterations" }).getByRole("listitem");
  await expect(failed.first()).toContainText(/#2\s*1\s*failed/i);
});

test("the tree lists the iterations of one status, with why they failed", async ({ page, api }) => {
  const id = await api.launch("some", { items: 2000 });
  await expect.poll(() => api.status(id)).toBe("completed");
  await page.goto(`/runs/${id}/nodes`);
  const chip = page.getByRole("button", { name: "Only failed iterations of each" });
  await expect(chip).toHaveText("failed 2");
  await chip.click();
  const failed = page.getByRole("row", { name: /failed: #/ });
  await expect(failed).toHaveCount(2);
  await expect(failed.last()).toContainText("#1,235");
  await expect(failed.last().getByRole("gridcell").first()).toContainText("no luck with 1234");
  await expect(page.getByRole("row", { name: /completed: #/ })).toHaveCount(0);
  await chip.click();
  await expect(page.getByRole("row", { name: /completed: #1$|completed: #1 / }).first()).toBeVisible();
});

test("the focus goes to the card, and back to where it was", async ({ page, api }) => {
  const id = await api.launch("nested");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}/nodes`);
  const row = page.getByRole("row", { name: /failed: tables/ });
  await row.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("complementary", { name: "Node tables" })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(row).toBeFocused();
});

test("the log of one node, in one iteration or in all", async ({ page, api }) => {
  const id = await api.launch("colours");
  await expect.poll(() => api.status(id)).toBe("failed");
  await page.goto(`/runs/${id}/logs`);
  const lines = page.getByRole("log").locator(".log-line");
  await expect(lines.first()).toBeVisible();
  await page.getByRole("combobox", { name: "Node" }).selectOption({ label: "\u00a0\u00a0say" });
  await expect(page.getByText("2 lines")).toBeVisible();
  await page.getByLabel("each #").fill("2");
  await expect(page.getByText("1 line", { exact: true })).toBeVisible();
  await expect(lines).toContainText("item b");
  await expect(page).toHaveURL(/in=each%3Aiter1%3Anode0%3Asay/);
  await page.reload();
  await expect(page.getByText("1 line", { exact: true })).toBeVisible();
  await expect(page.getByLabel("each #")).toHaveValue("2");
});
