/* model.ts: tests with a model that says what they let it say, on a server whose provider `local` it is. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server as HttpServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test as base } from "./fixture";

/** Two calls and a text, and, when told to go on, the end of its answer. */
export class Model {
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

export const test = base.extend<{ model: Model }>({
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
});
