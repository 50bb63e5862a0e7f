import { expect, test } from "vitest";
import type { FeedEvent } from "../../api/types";
import { sayingOfUsage, talksOf } from "./talk";

let seq = 0;
const at = (kind: string, path: string, more: object = {}): FeedEvent => ({
  seq: ++seq,
  index: 0,
  kind,
  runId: "r",
  workflow: "w",
  at: 1000 + seq,
  ...(path !== "" && { path }),
  ...more,
});
const answered = (path: string, result: unknown, calls?: object[]) =>
  at("step.completed", path, {
    result,
    state: {
      usage: { inputTokens: 10, outputTokens: 5, cost: 0.5 },
      model: "m",
      finishReason: "stop",
      ...(calls && { calls }),
    },
  });
const isChat = (path: string) => path === "ask";

test("turns, tools, approvals, tokens and cost are told in order", () => {
  const events = [
    at("node.started", "ask"),
    at("step.started", "ask:turn1"),
    at("log", "ask:turn1", { stream: true, message: "let me" }),
    answered("ask:turn1", "let me see", [
      { id: "a", name: "add", arguments: { a: 1 } },
      { id: "b", name: "pay", arguments: {} },
      { id: "c", name: "nobody", arguments: {} },
      { id: "d", name: "read", arguments: {} },
    ]),
    at("node.started", "ask:turn1:call0:add"),
    at("step.completed", "ask:turn1:call0:add:node0:sum", { result: 3 }),
    at("node.completed", "ask:turn1:call0:add"),
    at("node.started", "ask:turn1:call1:pay"),
    at("step.started", "ask:turn1:call1:pay:node0:approve"),
    at("step.started", "ask:turn1:call3:files"),
    at("step.failed", "ask:turn1:call3:files", { error: { message: "gone" } }),
  ];
  let [talk] = talksOf(events, isChat);
  expect(talk!.conversations[0]![0]!.streamed).toBe("");
  expect(talk!.conversations[0]![0]!.calls[1]!.approval).toEqual({ askedAt: expect.any(Number) as number });
  events.push(
    at("signal.received", "", {
      name: "approve:ask:turn1:call1:pay",
      payload: { approved: false, reason: "no" },
      by: "ana",
    }),
    at("node.failed", "ask:turn1:call1:pay", { error: { message: "not approved: no" } }),
    at("step.started", "ask:turn2"),
    at("log", "ask:turn2", { stream: true, message: "do" }),
    at("log", "ask:turn2", { stream: true, message: "ne" }),
    at("log", "ask:turn2", { message: "a line of another kind" }),
  );
  [talk] = talksOf(events, isChat);
  const [first, second] = talk!.conversations[0]!;
  expect(first!.answer).toBe("let me see");
  expect(first!.calls.map((call) => [call.name, call.status, call.result, call.error])).toEqual([
    ["add", "completed", 3, undefined],
    ["pay", "failed", undefined, "not approved: no"],
    ["nobody", "pending", undefined, undefined],
    ["read", "failed", undefined, "gone"],
  ]);
  expect(first!.calls[1]!.approval).toMatchObject({ approved: false, by: "ana", reason: "no" });
  expect([second!.status, second!.streamed]).toEqual(["running", "done"]);
  expect(sayingOfUsage(talk!.usage)).toBe("10 tokens in, 5 out, cost 0.5");
});

test("a conversation that begins anew is another one; a request that is sent again is the same", () => {
  const [talk] = talksOf(
    [
      at("step.started", "ask:turn1"),
      at("step.retrying", "ask:turn1", { error: { message: "busy" } }),
      at("step.started", "ask:turn1"),
      at("step.failed", "ask:turn1", { error: { message: "on fire" } }),
      at("step.started", "ask:turn1"),
      answered("ask:turn1", "hello"),
      at("step.started", "other:turn1"),
    ],
    isChat,
  );
  expect(talk!.conversations.map((turns) => turns.map((turn) => turn.status))).toEqual([["failed"], ["completed"]]);
});

test("the result of a call that is made of more than a sequence is not guessed", () => {
  const [talk] = talksOf(
    [
      at("step.started", "ask:turn1"),
      answered("ask:turn1", null, [{ name: "each", arguments: {} }]),
      at("node.started", "ask:turn1:call0:each"),
      at("step.completed", "ask:turn1:call0:each:node0:a", { result: 1 }),
      at("step.completed", "ask:turn1:call0:each:node1:b:iter0:node0:c", { result: 2 }),
    ],
    isChat,
  );
  expect(talk!.conversations[0]![0]!.calls[0]!.result).toBeUndefined();
});
