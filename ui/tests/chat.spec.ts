import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server as HttpServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, expectAccessible, expectNoSideScroll, test as base } from "./fixture";

/** A model that says what the test lets it say: two calls and a text, and, when told to go on, the end of its answer. */
class Model {
  private held: ServerResponse | undefined;
  readonly server: HttpServer = createServer((request, response) => {
    let text = "";
    request.on("data", (piece: Buffer) => (text += piece.toString()));
    request.on("end", () => this.answer(JSON.parse(text) as { messages: { role: string }[] }, response));
  });

  private answer(body: { messages: { role: string }[] }, response: ServerResponse): void {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    if (body.messages.some((message) => message.role === "assistant")) {
      this.say(response, { content: "It is three, " });
      this.held = response;
      return;
    }
    this.say(response, { content: "Let me see." });
    [
      ["add", { a: 1, b: 2 }],
      ["refund", { a: 40, b: 2 }],
      ["nobody", {}],
    ].forEach(([name, args], index) =>
      this.say(response, {
        tool_calls: [{ index, id: `c${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } }],
      }),
    );
    this.end(response, "tool_calls");
  }
  private say(response: ServerResponse, delta: object): void {
    response.write(
      `data: ${JSON.stringify({ model: "scripted-1", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`,
    );
  }
  private end(response: ServerResponse, finish: string): void {
    const usage = { prompt_tokens: 1200, completion_tokens: 30, total_tokens: 1230 };
    response.write(
      `data: ${JSON.stringify({ model: "scripted-1", choices: [{ index: 0, delta: {}, finish_reason: finish }] })}\n\n`,
    );
    response.write(`data: ${JSON.stringify({ model: "scripted-1", choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  }
  /** The rest of the answer that is under way. */
  goOn(): void {
    this.say(this.held!, { content: "as everybody knows." });
    this.end(this.held!, "stop");
  }
}

const test = base.extend<{ model: Model }>({
  model: async ({}, use) => {
    const model = new Model();
    await new Promise<void>((listening) => model.server.listen(0, "127.0.0.1", listening));
    await use(model);
    model.server.closeAllConnections();
    model.server.close();
  },
  serverOptions: async ({ model }, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "rival-ui-chat-"));
    const file = path.join(folder, "rival.yaml");
    const { port } = model.server.address() as AddressInfo;
    writeFileSync(
      file,
      `providers: { local: { kind: openai, baseUrl: "http://127.0.0.1:${port}", model: scripted, prices: { input: 3, output: 15 } } }\n`,
    );
    await use(["--config", file]);
    rmSync(folder, { recursive: true });
  },
  workflows: "workflows-chat",
});

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
