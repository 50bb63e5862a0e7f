// clients.test.mjs: the providers' own clients take the scripted endpoint (tests/e2e/model.py) for real: what they
// read of its answers, whole and streamed, is what they would of the providers'. So what Rival understands of it
// is what it will understand of them.
import assert from "node:assert/strict";
import test from "node:test";

import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import OpenAI, { APIError as OpenAIError } from "openai";

const url = `http://127.0.0.1:${process.env.PORT}`;
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-test", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "sk-test", maxRetries: 0 });
const limit = { timeout: 60_000 };
const messages = [{ role: "user", content: "go" }];
const parameters = { type: "object", properties: { a: { type: "integer" } } };
const openaiTools = [{ type: "function", function: { name: "add", parameters } }];
const anthropicTools = [{ name: "add", input_schema: parameters }];

test("openai: a whole answer", limit, async () => {
  const answer = await openai.chat.completions.create({ model: "plain", messages });
  assert.equal(answer.choices[0].message.content, "hello");
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.deepEqual(answer.usage, { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 });
});

test("openai: a streamed answer", limit, async () => {
  const stream = openai.chat.completions.stream({
    model: "plain", messages, stream_options: { include_usage: true },
  });
  let text = "";
  stream.on("content", (piece) => (text += piece));
  const answer = await stream.finalChatCompletion();
  assert.equal(text, "hello");
  assert.equal(answer.choices[0].message.content, "hello");
  assert.equal((await stream.totalUsage()).total_tokens, 15);
});

test("openai: streamed calls of tools", limit, async () => {
  const stream = openai.chat.completions.stream({ model: "tools", messages, tools: openaiTools });
  const { choices } = await stream.finalChatCompletion();
  assert.equal(choices[0].finish_reason, "tool_calls");
  assert.deepEqual(choices[0].message.tool_calls.map((call) => [call.id, call.function.name, call.function.arguments]), [
    ["c1", "add", '{"a": 2, "b": 3}'], ["c2", "nobody", "{}"], ["c3", "add", '{"a": "x"}'],
  ]);
});

const png = "iVBORw0KGgo=";

test("openai: an image and a file", limit, async () => {
  const answer = await openai.chat.completions.create({
    model: "sees",
    messages: [{
      role: "user",
      content: [
        { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
        { type: "text", text: "go" },
      ],
    }],
  });
  assert.equal(answer.choices[0].message.content, "image_url image/png - 4c4b6a3b; file application/pdf a.pdf 38523c08; text go");
});

test("openai: too many requests, a refusal, a broken server", limit, async () => {
  for (const [model, status] of [["busy", 429], ["refuses", 401], ["broken", 500]])
    await assert.rejects(openai.chat.completions.create({ model, messages }), (error) => {
      assert.ok(error instanceof OpenAIError);
      assert.equal(error.status, status);
      return true;
    });
});

test("openai: streams that break", limit, async () => {
  for (const model of ["stream-bad", "stream-dropped", "stream-error"])
    await assert.rejects(async () => {
      for await (const chunk of await openai.chat.completions.create({ model, messages, stream: true })) void chunk;
    }, model);
});

test("anthropic: a whole answer", limit, async () => {
  const answer = await anthropic.messages.create({ model: "plain", max_tokens: 100, messages });
  assert.equal(answer.content[0].text, "hello");
  assert.equal(answer.stop_reason, "end_turn");
  assert.deepEqual([answer.usage.input_tokens, answer.usage.output_tokens], [10, 5]);
});

test("anthropic: a streamed answer", limit, async () => {
  let text = "";
  const stream = anthropic.messages.stream({ model: "plain", max_tokens: 100, messages }).on("text", (piece) => (text += piece));
  const answer = await stream.finalMessage();
  assert.equal(text, "hello");
  assert.equal(answer.content[0].text, "hello");
  assert.deepEqual([answer.usage.input_tokens, answer.usage.output_tokens], [10, 5]);
});

test("anthropic: streamed calls of tools", limit, async () => {
  const stream = anthropic.messages.stream({ model: "tools", max_tokens: 100, messages, tools: anthropicTools });
  const { content, stop_reason } = await stream.finalMessage();
  assert.equal(stop_reason, "tool_use");
  assert.deepEqual(content.map((block) => block.type === "text" ? block.text : [block.id, block.name, block.input]), [
    "let me see", ["c1", "add", { a: 2, b: 3 }], ["c2", "nobody", {}], ["c3", "add", { a: "x" }],
  ]);
});

test("anthropic: a value of a schema", limit, async () => {
  const schema = {
    type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false,
  };
  const { parsed_output } = await anthropic.messages.parse({
    model: "bare-value", max_tokens: 100, messages, output_config: { format: jsonSchemaOutputFormat(schema) },
  });
  assert.deepEqual(parsed_output, { n: 7 });
});

test("anthropic: an image and documents", limit, async () => {
  const answer = await anthropic.messages.create({
    model: "sees", max_tokens: 100,
    messages: [{
      role: "user",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "a.pdf" },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "hello" }, title: "a.txt" },
        { type: "text", text: "go" },
      ],
    }],
  });
  assert.equal(answer.content[0].text, "image image/png - 4c4b6a3b; document application/pdf a.pdf 38523c08; document text/plain a.txt hello; text go");
});

test("anthropic: too many requests, a refusal, a broken server", limit, async () => {
  for (const [model, status] of [["busy", 429], ["refuses", 401], ["broken", 500]])
    await assert.rejects(anthropic.messages.create({ model, max_tokens: 100, messages }), (error) => {
      assert.ok(error instanceof AnthropicError);
      assert.equal(error.status, status);
      return true;
    });
});

test("anthropic: streams that break", limit, async () => {
  for (const model of ["stream-cut", "stream-bad", "stream-dropped", "stream-error"])
    await assert.rejects(anthropic.messages.stream({ model, max_tokens: 100, messages }).finalMessage(), model);
});
