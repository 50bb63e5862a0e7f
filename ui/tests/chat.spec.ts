import { expect, expectAccessible, expectNoSideScroll } from "./fixture";
import { test } from "./model";

test.use({ workflows: "workflows-chat" });

test("a chat is told as a conversation, live: prompts, tools, the approval, tokens and cost", async ({
  page,
  api,
  model,
}) => {
  const run = await api.launch("support", { question: "1 + 2" });
  await page.goto(`/runs/${run}`);
  await page.getByRole("navigation", { name: "Parts of the run" }).getByRole("link", { name: "Chat" }).click();
  const chat = page.getByRole("region", { name: "Conversation of ask" });
  await expect(chat).toContainText("You answer in one sentence.");
  await expect(chat).toContainText("What is 1 + 2?");
  await expect(chat.getByRole("list", { name: "Attached files" })).toHaveText("photo · image/png · 8 B");
  const first = chat.getByRole("listitem", { name: "Turn 1" });
  await expect(first).toContainText("Let me see.");
  await expect(first).toContainText("1,200 tokens in, 30 out, cost 0.00405");
  await expect(first).toContainText("scripted-1");
  const call = (name: string) => first.getByRole("listitem", { name: `Call of ${name}` });
  await expect(call("add").getByRole("group", { name: "result of add" })).toHaveText(/3/);
  await expect(call("add").getByRole("group", { name: "arguments of add" })).toContainText("b");
  await expect(call("refund")).toContainText("Waits for somebody to approve this call");
  await expectAccessible(page);

  await api.post(`/runs/${run}/signals/approve:ask:turn1:call1:refund`, { approved: true });
  await expect(call("refund")).toContainText("Approved, ");
  await expect(call("refund").getByRole("group", { name: "result of refund" })).toHaveText(/42/);
  await expect(call("nobody")).toContainText("There is no tool of this name.");

  // The answer is there as it comes, before it has ended.
  const second = chat.getByRole("listitem", { name: "Turn 2" });
  await expect(second).toContainText("It is three,");
  await expect(second).toContainText("running");
  model.goOn();
  await expect(second).toContainText("It is three, as everybody knows.");
  await expect(second).not.toContainText("running");
  await expect(chat).toContainText("2 turns · 2,400 tokens in, 60 out, cost 0.0081");
  await expectAccessible(page);

  await page.reload();
  await expect(second).toContainText("It is three, as everybody knows.");
  await page.setViewportSize({ width: 390, height: 780 });
  await expectNoSideScroll(page);
  await page.reload();
  // The tabs do not all fit, and the current one is last: it is in view.
  await expect(page.getByRole("link", { name: "Chat" })).toBeInViewport({ ratio: 0.9 });
  await second.getByRole("link", { name: "turn 2" }).click();
  await expect(page).toHaveURL(/node=ask%3Aturn2/);
});

test("runs without chats have no such tab", async ({ page, api }) => {
  const run = await api.launch("add", { a: 1, b: 1 });
  await page.goto(`/runs/${run}`);
  const tabs = page.getByRole("navigation", { name: "Parts of the run" });
  await expect(tabs.getByRole("link", { name: "History" })).toBeVisible();
  await expect(tabs.getByRole("link", { name: "Chat" })).toHaveCount(0);
});
