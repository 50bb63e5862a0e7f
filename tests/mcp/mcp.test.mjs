// mcp.test.mjs: the MCP server, with the public clients and a bare one on the other side.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import test from "node:test";

import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, CreateTaskResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";

import { MODERN, TASKS, ask, flows, folder, modern, pipe, post, rival, serve, sleep, tokens, until } from "./harness.mjs";

const TOOLS = ["rival_list", "rival_launch", "rival_wait", "rival_cancel", "rival_decide", "rival_why", "rival_logs", "rival_attachments"];
const limit = { timeout: 120_000 };

// ------------------------------------------------------------------------------------- public clients

const about = { name: "tests", version: "1" };
const clients = {
  "SDK v1": () => new ClientV1(about),
  "SDK v2, legacy": () => new ClientV2(about),
  "SDK v2, modern": () => new ClientV2(about, { versionNegotiation: { mode: { pin: MODERN } } }),
  "SDK v2, auto": () => new ClientV2(about, { versionNegotiation: { mode: "auto" } }),
};

async function use(client) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  assert.deepEqual(names.slice(0, TOOLS.length), TOOLS);
  assert.deepEqual(tools.find((tool) => tool.name === "greet").inputSchema, {
    type: "object", properties: { name: { type: "string" } }, required: ["name"],
  });

  const greeted = await client.callTool({ name: "greet", arguments: { name: "Ann" } });
  assert.equal(greeted.structuredContent.results.say.result, "Hello, Ann!");
  assert.deepEqual(JSON.parse(greeted.content[0].text), greeted.structuredContent);
  const { runId } = greeted.structuredContent;

  const refused = await client.callTool({ name: "greet", arguments: {} });
  assert.equal(refused.isError, true);
  assert.match(JSON.stringify(refused.structuredContent.violations), /name/);
  const failed = await client.callTool({ name: "failing_job", arguments: {} });
  assert.equal(failed.isError, true);
  assert.equal(failed.structuredContent.status, "failed");
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), /no tool/);

  const progress = [];
  await client.callTool({ name: "slow_compute", arguments: { seconds: 0.3 } }, ...progressArguments(client, progress));
  assert.ok(progress.length >= 1, "of what comes with the answer, this client may drop some");
  for (let i = 1; i < progress.length; i++) assert.ok(progress[i].progress > progress[i - 1].progress);

  const number = await client.callTool({ name: "number", arguments: { input: 4 } });
  assert.equal(number.structuredContent.results.next.result, 5);

  const why = await client.callTool({ name: "rival_why", arguments: { runId } });
  assert.equal(why.structuredContent.status, "completed");
  const listed = await client.callTool({ name: "rival_list", arguments: { workflow: "greet", limit: 1 } });
  assert.equal(listed.structuredContent.runs[0].runId, runId);

  const logged = await client.callTool({ name: "test_logging_tool", arguments: {} });
  const lines = await client.callTool({ name: "rival_logs", arguments: { runId: logged.structuredContent.runId, step: "say" } });
  assert.ok(lines.structuredContent.logs.some((line) => line.message === "a line"));
  const launched = (await client.callTool({ name: "rival_launch", arguments: { workflow: "wait_for_it" } })).structuredContent.runId;
  const cancelled = await client.callTool({ name: "rival_cancel", arguments: { runId: launched } });
  assert.equal(cancelled.isError ?? false, false);
  const ended = await client.callTool({ name: "rival_wait", arguments: { runId: launched } });
  assert.equal(ended.structuredContent.status, "cancelled");

  const { resources } = await client.listResources();
  assert.ok(resources.some((resource) => resource.uri === `rival://runs/${runId}`));
  const { contents } = await client.readResource({ uri: `rival://runs/${runId}` });
  assert.equal(JSON.parse(contents[0].text).results.say.result, "Hello, Ann!");
  const logs = await client.readResource({ uri: `rival://runs/${runId}/logs` });
  assert.ok(Array.isArray(JSON.parse(logs.contents[0].text).logs));
  await assert.rejects(client.readResource({ uri: "rival://runs/none" }), /not found/);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.deepEqual(resourceTemplates.map((it) => it.uriTemplate), ["rival://runs/{id}", "rival://runs/{id}/logs", "rival://runs/{id}/attachments/{aid}"]);
}

/** The two packages take options in different places. */
function progressArguments(client, to) {
  const options = { onprogress: (progress) => to.push(progress) };
  return client instanceof ClientV1 ? [undefined, options] : [options];
}

for (const [name, make] of Object.entries(clients)) {
  test(`${name}, by HTTP`, limit, async (t) => {
    const server = await serve(t, join(folder(t), "a.db"));
    const client = make();
    t.after(() => client.close());
    await client.connect(new (client instanceof ClientV1 ? HttpV1 : HttpV2)(new URL(server.mcp)));
    await use(client);
  });
  test(`${name}, by stdio`, limit, async (t) => {
    const client = make();
    t.after(() => client.close());
    const Transport = client instanceof ClientV1 ? StdioV1 : StdioV2;
    await client.connect(new Transport({ command: rival, args: ["mcp", flows, "--store", join(folder(t), "a.db")] }));
    await use(client);
  });
}

test("SDK v1: tasks of 2025-11-25", limit, async (t) => {
  const server = await serve(t, join(folder(t), "a.db"));
  const client = new ClientV1(about, { capabilities: { tasks: {} } });
  t.after(() => client.close());
  await client.connect(new HttpV1(new URL(server.mcp)));
  const seen = [];
  for await (const message of client.experimental.tasks.callToolStream({ name: "slow_compute", arguments: { seconds: 0.2, label: "x" } }, undefined, { task: { ttl: 60_000 } }))
    seen.push(message);
  assert.equal(seen[0].type, "taskCreated");
  assert.equal(seen.at(-1).type, "result", String(seen.at(-1).error));
  assert.equal(seen.at(-1).result.structuredContent.results.say.result, "computed x");
  const { tasks } = await client.experimental.tasks.listTasks();
  assert.equal(tasks[0].taskId, seen[0].task.taskId);
  assert.equal(tasks[0].status, "completed");
  const gate = await client.request({ method: "tools/call", params: { name: "wait_for_it", arguments: {}, task: {} } }, CreateTaskResultSchema);
  const cancelled = await client.experimental.tasks.cancelTask(gate.task.taskId);
  assert.equal(cancelled.status, "cancelled");
  await assert.rejects(client.experimental.tasks.cancelTask(gate.task.taskId), /ended/);
});

test("SDK v1: a task that waits for a signal, over restarts of client and server", limit, async (t) => {
  const store = join(folder(t), "a.db");
  const first = await serve(t, store);
  const connect = async (server) => {
    const client = new ClientV1(about, { capabilities: { tasks: {} } });
    t.after(() => client.close());
    await client.connect(new HttpV1(new URL(server.mcp)));
    return client;
  };
  const before = await connect(first);
  const { task } = await before.request({ method: "tools/call", params: { name: "wait_for_it", arguments: {}, task: {} } }, CreateTaskResultSchema);
  await before.close();
  await first.stop("SIGKILL");
  const after = await connect(await serve(t, store));
  const waits = await until(async () => {
    const now = await after.experimental.tasks.getTask(task.taskId);
    return now.status === "input_required" && now;
  });
  assert.match(waits.statusMessage, /rival_decide/);
  const result = after.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema);
  await after.callTool({ name: "rival_decide", arguments: { runId: task.taskId, signal: "go", payload: { by: "me" } } });
  assert.deepEqual((await result).structuredContent.results.ask.result, { by: "me" });
  assert.equal((await after.experimental.tasks.getTask(task.taskId)).status, "completed");
});

test("SDK v2: a signal is asked for in the midst of a call", limit, async (t) => {
  const server = await serve(t, join(folder(t), "a.db"));
  const client = new ClientV2(about, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: MODERN } } });
  t.after(() => client.close());
  const asked = [];
  client.setRequestHandler("elicitation/create", (request) => {
    asked.push(request.params);
    return { action: "accept", content: { confirm: true } };
  });
  await client.connect(new HttpV2(new URL(server.mcp)));
  const result = await client.callTool({ name: "confirm_delete", arguments: { filename: "a" } });
  assert.equal(asked.length, 1);
  assert.deepEqual(asked[0].requestedSchema.properties, { confirm: { type: "boolean" } });
  assert.equal(result.structuredContent.results.say.result, "deleted");
});

// ---------------------------------------------------------------------------------------------- tasks

const able = { elicitation: {}, extensions: { [TASKS]: {} } };

/** Poll until it has ended. */
const ended = (asks, taskId) => until(async () => {
  const task = await asks("tasks/get", { taskId }, able);
  return task.status !== "working" && task;
});

test("a task outlives its server, killed in its midst", limit, async (t) => {
  const store = join(folder(t), "a.db");
  const first = await serve(t, store);
  const created = await ask(first.mcp, "tools/call", { name: "slow_compute", arguments: { seconds: 1, label: "k" } }, able);
  assert.equal(created.resultType, "task");
  assert.equal(created.status, "working");
  await first.stop("SIGKILL");
  const second = await serve(t, store);
  const task = await ended((...request) => ask(second.mcp, ...request), created.taskId);
  assert.equal(task.status, "completed");
  assert.equal(task.result.isError, false);
  assert.equal(task.result.structuredContent.results.say.result, "computed k");
});

test("and so by stdio: another process on the store finishes it", limit, async (t) => {
  const store = join(folder(t), "a.db");
  const first = pipe(t, [flows, "--store", store]);
  const { taskId } = await first.ask("tools/call", { name: "slow_compute", arguments: { seconds: 1, label: "k" } }, able);
  await first.stop("SIGKILL");
  const second = pipe(t, [flows, "--store", store]);
  const task = await ended((...request) => second.ask(...request), taskId);
  assert.equal(task.result.structuredContent.results.say.result, "computed k");
  assert.equal(await second.stop(), 0);
});

test("what a task asks for is answered after a restart, too", limit, async (t) => {
  const store = join(folder(t), "a.db");
  const first = await serve(t, store);
  const { taskId } = await ask(first.mcp, "tools/call", { name: "confirm_delete", arguments: { filename: "f" } }, able);
  const waits = await ended((...request) => ask(first.mcp, ...request), taskId);
  assert.equal(waits.status, "input_required");
  const [key] = Object.keys(waits.inputRequests);
  await first.stop("SIGKILL");
  const second = await serve(t, store);
  const again = await ended((...request) => ask(second.mcp, ...request), taskId);
  assert.deepEqual(again.inputRequests, waits.inputRequests, "the same question has the same key");

  const update = (responses) => ask(second.mcp, "tasks/update", { taskId, inputResponses: responses }, able);
  await update({ "no such key": { action: "accept", content: {} }, [key]: { action: "decline" } });
  await assert.rejects(update({ [key]: { action: "accept", content: { confirm: "perhaps" } } }), /confirm/);
  assert.equal((await ask(second.mcp, "tasks/get", { taskId }, able)).status, "input_required");
  await update({ [key]: { action: "accept", content: { confirm: true } } });
  const task = await ended((...request) => ask(second.mcp, ...request), taskId);
  assert.equal(task.result.structuredContent.results.say.result, "deleted");
});

test("a task without elicitation, without a schema, cancelled, unknown", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const only = { extensions: { [TASKS]: {} } };
  const { taskId } = await ask(mcp, "tools/call", { name: "wait_for_it" }, only);
  const mute = await until(async () => {
    const task = await ask(mcp, "tasks/get", { taskId }, only);
    return task.status === "input_required" && task;
  });
  assert.deepEqual(mute.inputRequests, {}, "nobody there could be asked");
  const { inputRequests } = await ask(mcp, "tasks/get", { taskId }, able);
  const [key] = Object.keys(inputRequests);
  assert.deepEqual(Object.keys(inputRequests[key].params.requestedSchema.properties), ["payload"]);
  await ask(mcp, "tasks/update", { taskId, inputResponses: { [key]: { action: "accept", content: { payload: '{"a": [1]}' } } } }, able);
  const task = await ended((...request) => ask(mcp, ...request), taskId);
  assert.deepEqual(task.result.structuredContent.results.ask.result, { a: [1] });

  const other = (await ask(mcp, "tools/call", { name: "wait_for_it" }, able)).taskId;
  assert.deepEqual((await ask(mcp, "tasks/cancel", { taskId: other }, able)).resultType, "complete");
  assert.equal((await ask(mcp, "tasks/get", { taskId: other }, able)).status, "cancelled");
  await ask(mcp, "tasks/cancel", { taskId: other }, able);
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"])
    await assert.rejects(ask(mcp, method, { taskId: "none", inputResponses: {} }, able), { code: -32602 });
  const { status, answer } = await post(mcp, modern("tasks/get", { taskId: other }));
  assert.equal(status, 400);
  assert.equal(answer.error.code, -32021);
});

test("rival_decide: a signal, and what cannot be decided", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const { taskId } = await ask(mcp, "tools/call", { name: "wait_for_it" }, able);
  const waiting = await ask(mcp, "tools/call", { name: "rival_list", arguments: { waiting: "somebody" } });
  assert.equal(waiting.structuredContent.runs[0].runId, taskId);
  const none = await ask(mcp, "tools/call", { name: "rival_decide", arguments: { runId: taskId, action: "resume" } });
  assert.equal(none.isError, true);
  assert.equal(none.structuredContent.status, 409);
  const both = await ask(mcp, "tools/call", { name: "rival_decide", arguments: { runId: taskId, action: "resume", signal: "go" } });
  assert.equal(both.isError, true);
  const sent = await ask(mcp, "tools/call", { name: "rival_decide", arguments: { runId: taskId, signal: "go", payload: { by: "me" } } });
  assert.equal(sent.isError, false);
  const waited = await ask(mcp, "tools/call", { name: "rival_wait", arguments: { runId: taskId } });
  assert.deepEqual(waited.structuredContent.results.ask.result, { by: "me" });
});

/** What a subscription tells, until `enough` of it was told; `then` is called when it has begun. */
async function listen(mcp, notifications, enough, then = () => {}) {
  const message = modern("subscriptions/listen", { notifications }, able);
  const stop = new AbortController();
  const response = await fetch(mcp, {
    method: "POST", signal: stop.signal, body: JSON.stringify(message),
    headers: { "content-type": "application/json", accept: "text/event-stream", "mcp-protocol-version": MODERN, "mcp-method": message.method },
  });
  const seen = [];
  let rest = "";
  for await (const bytes of response.body) {
    if (seen.length === 0) then();
    const lines = (rest + Buffer.from(bytes).toString()).split("\n");
    rest = lines.pop();
    seen.push(...lines.filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6))));
    if (enough(seen)) break;
  }
  stop.abort();
  assert.equal(seen[0].method, "notifications/subscriptions/acknowledged");
  for (const it of seen) assert.equal(it.params._meta["io.modelcontextprotocol/subscriptionId"], message.id);
  return seen;
}

test("subscriptions tell of tasks, and of nothing else", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const { taskId } = await ask(mcp, "tools/call", { name: "slow_compute", arguments: { seconds: 0.5 } }, able);
  const seen = await listen(mcp, { taskIds: [taskId, "none"], promptsListChanged: true },
    (messages) => messages.some((it) => it.params?.status === "completed"));
  assert.deepEqual(seen[0].params.notifications, { taskIds: [taskId] });
  assert.ok(seen.slice(1).every((it) => it.method === "notifications/tasks" && it.params.taskId === taskId));
});

test("subscriptions tell of tools that come", limit, async (t) => {
  const dir = folder(t);
  writeFileSync(join(dir, "one.yaml"), "name: one\nsteps: [ { a: { value: 1 } } ]\n");
  const { mcp } = await serve(t, join(dir, "a.db"), { dir, args: ["--watch"] });
  const seen = await listen(mcp, { toolsListChanged: true },
    (messages) => messages.some((it) => it.method === "notifications/tools/list_changed"),
    () => writeFileSync(join(dir, "two.yaml"), "name: two\nsteps: [ { a: { value: 2 } } ]\n"));
  assert.deepEqual(seen[0].params.notifications, { toolsListChanged: true });
  assert.ok((await ask(mcp, "tools/list")).tools.some((tool) => tool.name === "two"));
});

test("attachments are read by a tool, and as resources", limit, async (t) => {
  const dir = folder(t);
  writeFileSync(join(dir, "m.yaml"), 'name: m\nstages: { one: [ { name: a, agent_id: f } ] }\nagents:\n- { id: f, command: [echo, "7"] }\n');
  const { mcp } = await serve(t, join(dir, "a.db"), { dir });
  const { runId } = (await ask(mcp, "tools/call", { name: "m" })).structuredContent;
  const list = await ask(mcp, "tools/call", { name: "rival_attachments", arguments: { runId, state: "a" } });
  const [{ id }] = list.structuredContent.attachments;
  const one = await ask(mcp, "tools/call", { name: "rival_attachments", arguments: { runId, id } });
  assert.equal(one.structuredContent.result, 7);
  for (const aid of [id, encodeURIComponent(id)]) {
    const { contents } = await ask(mcp, "resources/read", { uri: `rival://runs/${runId}/attachments/${aid}` });
    assert.equal(JSON.parse(contents[0].text).result, 7);
  }
  await assert.rejects(ask(mcp, "resources/read", { uri: `rival://runs/${runId}/attachments/none` }), { code: -32602 });
});

// ---------------------------------------------------------------------------------- who, and how much

test("tokens and roles are those of the API", limit, async (t) => {
  const dir = folder(t);
  const words = { viewer: "v".repeat(40), operator: "o".repeat(40), worker: "w".repeat(40) };
  const file = tokens(dir, Object.entries(words).map(([role, token]) => `${role} ${token}\n`).join(""));
  const { mcp, url } = await serve(t, join(dir, "a.db"), { args: ["--token-file", file] });
  const as = (role) => ({ authorization: `Bearer ${words[role]}` });
  assert.equal((await post(mcp, modern("tools/list"))).status, 401);
  assert.equal((await post(mcp, modern("tools/list"), { authorization: "Bearer nobody" })).status, 401);
  assert.equal((await post(mcp, modern("tools/list"), as("worker"))).status, 403);
  assert.ok((await ask(mcp, "tools/list", {}, {}, as("viewer"))).tools.length > TOOLS.length);
  for (const [name, args] of [["greet", { name: "x" }], ["rival_launch", { workflow: "greet" }], ["rival_cancel", { runId: "x" }]]) {
    const { status, answer } = await post(mcp, modern("tools/call", { name, arguments: args }), as("viewer"));
    assert.equal(status, 403, name);
    assert.equal(answer.error.code, 403);
  }
  const { runs } = await (await fetch(`${url}/api/v1/runs`, { headers: as("viewer") })).json();
  assert.equal(runs.length, 0, "nothing was started");
  const greeted = await ask(mcp, "tools/call", { name: "greet", arguments: { name: "x" } }, {}, as("operator"));
  assert.equal(greeted.isError, false);
  const token = join(dir, "token");
  writeFileSync(token, `operator ${words.operator}\n`, { mode: 0o600 });
  const client = pipe(t, ["--server", url, "--token-file", token]);
  assert.equal((await client.ask("tools/call", { name: "greet", arguments: { name: "y" } })).structuredContent.results.say.result, "Hello, y!");
  assert.equal(await client.stop(), 0);
});

test("pages of other sites are refused, and other names", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  assert.equal((await post(mcp, modern("tools/list"), { origin: "http://evil.example" })).status, 403);
  const foreign = await new Promise((resolve, reject) => {
    const { port } = new URL(mcp);
    http.request({ port, host: "127.0.0.1", path: "/mcp", method: "POST", headers: { host: "evil.example" } }, resolve).on("error", reject).end("{}");
  });
  assert.equal(foreign.statusCode, 403);
  assert.equal((await post(mcp, modern("tools/list"), { origin: new URL(mcp).origin })).status, 200);
});

test("sessions of 2025 begin, go on after a restart, and end", limit, async (t) => {
  const store = join(folder(t), "a.db");
  const first = await serve(t, store);
  const listen = new URL(first.url).host;
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const send = (message, more = {}, method = "POST") =>
    fetch(first.mcp, { method, headers: { ...headers, ...more }, body: message && JSON.stringify({ jsonrpc: "2.0", ...message }) });
  for (const [asked, got] of [["2025-06-18", "2025-06-18"], ["2025-11-25", "2025-11-25"], ["2024-11-05", "2025-11-25"], [MODERN, "2025-11-25"]]) {
    const response = await send({ id: 1, method: "initialize", params: { protocolVersion: asked, capabilities: {}, clientInfo: about } });
    assert.equal((await response.json()).result.protocolVersion, got);
    assert.match(response.headers.get("mcp-session-id"), /^2025-\d\d-\d\d\.[0-9a-f]{32}$/);
  }
  const response = await send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: about } });
  const session = { "mcp-session-id": response.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-11-25" };
  assert.equal((await send({ method: "notifications/initialized" }, session)).status, 202);
  assert.deepEqual(await (await send({ id: 2, method: "ping" }, session)).json(), { jsonrpc: "2.0", id: 2, result: {} });
  await first.stop("SIGKILL");
  await serve(t, store, { listen });
  assert.equal((await send({ id: 3, method: "tools/list" }, session)).status, 200);
  assert.equal((await send(undefined, session, "DELETE")).status, 204);
  assert.equal((await send({ id: 4, method: "tools/list" }, session)).status, 404);
  assert.equal((await send(undefined, session, "DELETE")).status, 404);
  assert.equal((await send(undefined, {}, "DELETE")).status, 400);
  assert.equal((await send({ id: 5, method: "ping" }, { "mcp-session-id": "made up" })).status, 404);
  const get = await send(undefined, {}, "GET");
  assert.equal(get.status, 405);
  assert.equal(get.headers.get("allow"), "POST, DELETE");
});

test("2025-06-18 has no tasks: a call waits for its run", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const send = (message) => fetch(mcp, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }) });
  const begun = await send({ method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: about } });
  assert.equal((await begun.json()).result.capabilities.tasks, undefined);
  Object.assign(headers, { "mcp-session-id": begun.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-06-18" });
  const answer = async (message) => {
    const text = await (await send(message)).text();
    return JSON.parse(text.startsWith("{") ? text : text.split("\n").findLast((line) => line.startsWith("data: {")).slice(6));
  };
  const { tools } = (await answer({ method: "tools/list" })).result;
  assert.ok(tools.every((tool) => tool.execution === undefined));
  const greeted = await answer({ method: "tools/call", params: { name: "greet", arguments: { name: "Old" }, task: {} } });
  assert.equal(greeted.result.structuredContent.results.say.result, "Hello, Old!");
  assert.equal((await answer({ method: "tasks/get", params: { taskId: greeted.result.structuredContent.runId } })).error.code, -32601);
});

test("headers of 2026-07-28 say what the body says", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const call = () => modern("tools/call", { name: "rival_list", arguments: {} });
  const code = async (message, headers) => {
    const { status, answer } = await post(mcp, message, headers);
    return [status, answer.error?.code];
  };
  assert.deepEqual(await code(call()), [200, undefined]);
  assert.deepEqual(await code(call(), { "mcp-name": `=?base64?${Buffer.from("rival_list").toString("base64")}?=` }), [200, undefined]);
  assert.deepEqual(await code(call(), { "mcp-name": "rival_why" }), [400, -32020]);
  assert.deepEqual(await code(call(), { "mcp-method": "tools/list" }), [400, -32020]);
  assert.deepEqual(await code(call(), { "mcp-protocol-version": "2025-11-25" }), [400, -32020]);
  const other = call();
  other.params._meta["io.modelcontextprotocol/protocolVersion"] = "2030-01-01";
  const { status, answer } = await post(mcp, other, { "mcp-protocol-version": "2030-01-01" });
  assert.deepEqual([status, answer.error.code, answer.error.data.supported], [400, -32022, [MODERN, "2025-11-25", "2025-06-18"]]);
  const bare = call();
  delete bare.params._meta["io.modelcontextprotocol/clientCapabilities"];
  assert.deepEqual(await code(bare), [400, -32602]);
  assert.deepEqual(await code(modern("no/such")), [404, -32601]);
});

test("hostile messages are refused, and hurt nothing", limit, async (t) => {
  const { mcp, url } = await serve(t, join(folder(t), "a.db"));
  const raw = async (body, type = "application/json") => {
    const response = await fetch(mcp, { method: "POST", body, headers: { "content-type": type, accept: "application/json" } });
    const text = await response.text();
    return [response.status, text && text.startsWith("{") ? JSON.parse(text).error?.code : undefined];
  };
  const request = (rest) => `{"jsonrpc":"2.0","id":1,${rest}}`;
  const deep = (n) => "[".repeat(n) + "]".repeat(n);
  for (const [body, status, code] of [
    ["", 400, -32700],
    ["{", 400, -32700],
    ["\0", 400, -32700],
    ['"\\ud800"', 400, -32700],
    ["null", 400, -32600],
    ["[]", 400, -32600],
    [`[${request('"method":"ping"')}]`, 400, -32600],
    ["{}", 400, -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1}', 400, -32600],
    [request('"method":7'), 400, -32600],
    [request('"method":"ping","params":[]'), 400, -32602],
    [request('"method":"\\u0070ing"'), 200, undefined],
    [request('"method":"tools/call"'), 200, -32602],
    [request('"method":"tools/call","params":{"name":7}'), 200, -32602],
    [request('"method":"tools/call","params":{"name":"greet","arguments":[]}'), 200, -32602],
    [request('"method":"tools/call","params":{"name":"../../etc/passwd"}'), 200, -32602],
    [request('"method":"tools/call","params":{"name":"a\\u0000b"}'), 200, -32602],
    [request(`"method":"tools/call","params":{"name":"${"n".repeat(100_000)}"}`), 200, -32602],
    [request('"method":"tools/list","params":{"cursor":"-1"}'), 200, -32602],
    [request('"method":"tools/list","params":{"cursor":"99999999999999999999"}'), 200, -32602],
    [request('"method":"resources/list","params":{"cursor":"%%"}'), 200, -32602],
    [request('"method":"resources/read","params":{"uri":"rival://runs/../x"}'), 200, -32002],
    [request('"method":"resources/read","params":{"uri":"rival://runs/x/y/z"}'), 200, -32002],
    [request('"method":"resources/read","params":{"uri":"file:///etc/passwd"}'), 200, -32002],
    [request(`"method":"ping","params":{"x":${deep(400)}}`), 200, undefined],
    [request(`"method":"ping","params":{"x":${deep(5000)}}`), 400, -32600],
    ['{"jsonrpc":"2.0","method":"notifications/whatever","params":{"requestId":[]}}', 202, undefined],
    ['{"jsonrpc":"2.0","id":9,"result":{}}', 202, undefined],
  ])
    assert.deepEqual(await raw(body), [status, code], body.slice(0, 80));
  assert.deepEqual((await raw(request('"method":"ping"'), "text/plain"))[0], 415);
  assert.deepEqual((await raw("x".repeat(9 << 20)).catch(() => [413]))[0], 413);
  for (const [name, args, says] of [
    ["rival_why", {}, /runId/],
    ["rival_why", { runId: 7 }, /runId/],
    ["rival_why", { runId: "x", extra: 1 }, /no argument "extra"/],
    ["rival_why", { runId: "no such run" }, /not the id/],
    ["rival_wait", { runId: "none" }, /no run/],
    ["rival_wait", { runId: "none", timeoutMs: -1 }, /no run/],
    ["rival_list", { limit: 0 }, /limit/],
    ["rival_list", { limit: { a: 1 } }, /limit/],
    ["rival_list", { status: "odd&limit=1" }, /status/],
    ["rival_logs", { runId: "none", level: "loud" }, /level/],
    ["rival_launch", { workflow: "none" }, /none/],
    ["rival_decide", { runId: "none" }, /action/],
  ]) {
    const result = await ask(mcp, "tools/call", { name, arguments: args });
    assert.equal(result.isError, true, JSON.stringify(args));
    assert.match(result.content[0].text, says);
  }
  await assert.rejects(ask(mcp, "tools/call", { name: "confirm_delete", requestState: "a/0123456789abcdef" }, { elicitation: {} }), { code: -32602 });
  const { runs } = await (await fetch(`${url}/api/v1/runs`)).json();
  assert.equal(runs.length, 0, "nothing was started");
});

test("a result that is too long is told of", limit, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const result = await ask(mcp, "tools/call", { name: "long_result" });
  assert.equal(result.structuredContent.status, "completed");
  assert.ok(result.structuredContent.resultsTooLarge > 1 << 20);
  assert.equal(result.structuredContent.results, undefined);
  const { runId } = result.structuredContent;
  const { contents } = await ask(mcp, "resources/read", { uri: `rival://runs/${runId}` });
  assert.equal(JSON.parse(contents[0].text).status, "completed");
});

test("a hundred calls that wait keep nobody waiting", limit, async (t) => {
  const { mcp, url } = await serve(t, join(folder(t), "a.db"));
  const { taskId } = await ask(mcp, "tools/call", { name: "wait_for_it" }, able);
  const waits = Array.from({ length: 100 }, () => ask(mcp, "tools/call", { name: "rival_wait", arguments: { runId: taskId, timeoutMs: 60_000 } }));
  await sleep(300);
  for (let i = 0; i < 20; i++) {
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    assert.equal((await ask(mcp, "tools/call", { name: "greet", arguments: { name: "z" } })).isError, false);
  }
  // Some go away; their run does not.
  for (let i = 0; i < 5; i++) {
    const stop = new AbortController();
    const gone = fetch(mcp, { method: "POST", signal: stop.signal, headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "rival_wait", arguments: { runId: taskId } } }) }).then((response) => response.text()).catch(() => {});
    await sleep(20);
    stop.abort();
    await gone;
  }
  const short = await ask(mcp, "tools/call", { name: "rival_wait", arguments: { runId: taskId, timeoutMs: 200 } });
  assert.equal(short.structuredContent.status, "running");
  assert.match(short.structuredContent.message, /rival_wait/);
  await ask(mcp, "tools/call", { name: "rival_decide", arguments: { runId: taskId, signal: "go", payload: 1 } });
  for (const result of await Promise.all(waits)) assert.equal(result.structuredContent.results.ask.result, 1);
});

test("a call that waits for a person says so at once; a server that ends says so to who waits", limit, async (t) => {
  const server = await serve(t, join(folder(t), "a.db"));
  const told = await ask(server.mcp, "tools/call", { name: "wait_for_it" });
  assert.equal(told.structuredContent.status, "running");
  assert.match(told.structuredContent.message, /signal/);
  const { runId } = told.structuredContent;
  const waits = ask(server.mcp, "tools/call", { name: "rival_wait", arguments: { runId, timeoutMs: 60_000 } });
  await sleep(300);
  await server.stop();
  assert.match((await waits).structuredContent.message, /shutting down/);
});

test("a call that has waited for 50 s returns the run's id, and the run goes on", { timeout: 300_000 }, async (t) => {
  const { mcp } = await serve(t, join(folder(t), "a.db"));
  const asked = Date.now();
  const progress = modern("tools/call", { name: "slow_compute", arguments: { seconds: 3600 }, _meta: { progressToken: "p" } });
  const { messages, answer } = await post(mcp, progress);
  assert.ok(Date.now() - asked >= 49_000, "not before");
  assert.equal(answer.result.structuredContent.status, "running");
  assert.match(answer.result.structuredContent.message, /rival_wait/);
  assert.ok(messages.filter((it) => it.method === "notifications/progress").length >= 2, "it says that it is still there");
  const { runId } = answer.result.structuredContent;
  assert.equal((await ask(mcp, "tools/call", { name: "rival_why", arguments: { runId } })).structuredContent.status, "running");
});

// ---------------------------------------------------------------------------------------------- stdio

test("stdio: beside a server, on its store and by its address", limit, async (t) => {
  const dir = folder(t), store = join(dir, "a.db");
  const server = await serve(t, store);
  const beside = pipe(t, ["--store", store]);
  const { tools } = await beside.ask("tools/list");
  assert.ok(tools.some((tool) => tool.name === "greet"));
  assert.equal((await beside.ask("tools/call", { name: "greet", arguments: { name: "b" } })).structuredContent.results.say.result, "Hello, b!");
  const remote = pipe(t, ["--server", server.url]);
  const progress = modern("tools/call", { name: "slow_compute", arguments: { seconds: 0.3 }, _meta: { progressToken: "p" } });
  assert.equal((await remote.send(progress)).result.structuredContent.status, "completed");
  assert.ok(remote.messages.some((it) => it.method === "notifications/progress" && it.params.progressToken === "p"));
  // Where the server was, the process beside it takes over.
  const { taskId } = await beside.ask("tools/call", { name: "slow_compute", arguments: { seconds: 1, label: "t" } }, able);
  await server.stop("SIGKILL");
  const task = await ended((...request) => beside.ask(...request), taskId);
  assert.equal(task.status, "completed");
  const lost = await remote.ask("tools/call", { name: "rival_list", arguments: {} });
  assert.equal(lost.isError, true);
  assert.match(lost.content[0].text, /no server answers/);
});

test("stdio: lines of all kinds", limit, async (t) => {
  const client = pipe(t, [flows, "--store", join(folder(t), "a.db")]);
  const nobody = client.answer(null);
  client.raw("\n  \r\nno json\n");
  assert.equal((await nobody).error.code, -32700);
  const long = client.answer(null);
  client.raw(`{"x":"${"y".repeat(9 << 20)}"}\n`);
  assert.equal((await long).error.code, -32700);
  assert.equal((await client.send({ jsonrpc: "2.0", id: "i", method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: about } })).result.protocolVersion, "2025-06-18");
  client.raw('{"jsonrpc":"2.0","method":"notifications/initialized"}\r\n');
  assert.deepEqual((await client.send({ jsonrpc: "2.0", id: "p", method: "ping" })).result, {});
  assert.equal((await client.send({ jsonrpc: "2.0", id: "t", method: "tasks/list" })).error.code, -32601, "of 2025-11-25");
  assert.equal((await client.ask("server/discover")).supportedVersions.length, 3);

  // One that waits is cancelled, and not answered; the run goes on.
  const { runId } = (await client.ask("tools/call", { name: "rival_launch", arguments: { workflow: "wait_for_it" } })).structuredContent;
  const waiting = modern("tools/call", { name: "rival_wait", arguments: { runId } });
  void client.send(waiting);
  client.raw(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: waiting.id } }) + "\n");
  assert.equal((await client.ask("tools/call", { name: "rival_why", arguments: { runId } })).structuredContent.status, "running");

  // So many at once, and no more.
  const many = Array.from({ length: 80 }, () => client.send(modern("tools/call", { name: "rival_wait", arguments: { runId } })));
  const refused = await Promise.race(many);
  assert.equal(refused.error.code, -32603);
  assert.match(refused.error.message, /under way/);
  const { stop } = client;
  const answers = Promise.all(many);
  assert.equal(await stop(), 0);
  assert.ok((await answers).every((it) => it.error !== undefined || /shutting down/.test(it.result.structuredContent.message)));
  assert.ok(!client.messages.some((it) => it.id === waiting.id), "who cancels hears nothing more");
});
