/* talk.ts: the conversations of a run's chats, from its events: who said what, which tools were called with what and
 * answered what, who approved, and what it cost.
 *
 * A chat is at `ask`, its requests at `ask:turn1`, the calls of an answer at `ask:turn1:call0:look-up`. */
import { isObject } from "../../api/json";
import type { FeedEvent, Json } from "../../api/types";

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** undefined: the provider has no prices */
  cost?: number;
}

export interface Approval {
  askedAt: number;
  /** undefined: nobody has answered yet */
  approved?: boolean;
  by?: string;
  at?: number;
  reason?: string;
}

export interface Call {
  /** from 0 */
  number: number;
  name: string;
  args: Json;
  /** undefined: it has not begun, or the model named a tool that does not exist */
  path?: string;
  status: "pending" | "running" | "completed" | "failed" | "cancelled";
  startedAt?: number;
  endedAt?: number;
  /** undefined: none, or it is made of several nodes */
  result?: Json;
  error?: string;
  approval?: Approval;
}

export interface Turn {
  /** from 1 */
  number: number;
  path: string;
  status: "running" | "waiting_retry" | "completed" | "failed" | "cancelled";
  startedAt: number;
  endedAt?: number;
  /** of an answer that is recorded; null: it has only calls */
  answer?: Json;
  /** so many bytes, too many for an event */
  answerBytes?: number;
  /** while it comes */
  streamed: string;
  calls: Call[];
  usage?: Usage;
  model?: string;
  finishReason?: string;
  error?: string;
  /** what the model was told about an answer that does not fit its schema */
  invalid?: string;
}

export interface Talk {
  path: string;
  /** each attempt of a chat is a conversation of its own */
  conversations: Turn[][];
  usage: Usage;
}

const TURN = /^(.*):turn(\d+)$/;
const CALL = /^(.*):turn(\d+):call(\d+):[^:]+/;
/** A node in a sequence of nodes and workflows, whose last result is that of the call. */
const IN_SEQUENCE = /^(:node\d+:[^:]+)*$/;

const numberIn = (value: Json | undefined): number => (value === undefined ? 0 : Number(value) || 0);
const textIn = (value: Json | undefined): string | undefined => (typeof value === "string" ? value : undefined);

function usageIn(value: Json | undefined): Usage | undefined {
  if (!isObject(value)) return undefined;
  const usage: Usage = { inputTokens: numberIn(value.inputTokens), outputTokens: numberIn(value.outputTokens) };
  if (value.cost !== undefined) usage.cost = numberIn(value.cost);
  return usage;
}

function add(to: Usage, more: Usage): void {
  to.inputTokens += more.inputTokens;
  to.outputTokens += more.outputTokens;
  if (more.cost !== undefined) to.cost = (to.cost ?? 0) + more.cost;
}

/** `isChat`: is there a chat at this path? */
export function talksOf(events: readonly FeedEvent[], isChat: (path: string) => boolean): Talk[] {
  const talks = new Map<string, Talk>();

  const turnAt = (path: string, number: number): Turn | undefined =>
    talks
      .get(path)
      ?.conversations.at(-1)
      ?.findLast((turn) => turn.number === number);

  function begin(path: string, number: number, event: FeedEvent): Turn {
    let talk = talks.get(path);
    if (!talk) talks.set(path, (talk = { path, conversations: [[]], usage: { inputTokens: 0, outputTokens: 0 } }));
    const before = talk.conversations.at(-1)!.at(-1);
    // Asked again, it is the same request; after an answer or a failure, its number comes again in the next one.
    if (before && before.number === number && (before.status === "running" || before.status === "waiting_retry")) {
      before.status = "running";
      before.streamed = "";
      return before;
    }
    if (before && before.number >= number) talk.conversations.push([]);
    const turn: Turn = {
      number,
      path: event.path!,
      status: "running",
      startedAt: event.at,
      streamed: "",
      calls: [],
    };
    talk.conversations.at(-1)!.push(turn);
    return turn;
  }

  function hearTurn(path: string, number: number, event: FeedEvent): void {
    if (event.kind === "step.started") {
      begin(path, number, event);
      return;
    }
    const turn = turnAt(path, number);
    if (!turn) return;
    if (event.kind === "log" && event.stream) turn.streamed += event.message ?? "";
    else if (event.kind === "step.retrying") {
      turn.status = "waiting_retry";
      turn.error = event.error?.message;
    } else if (event.kind === "step.completed") {
      const state = event.state as Json | undefined;
      turn.status = "completed";
      turn.endedAt = event.at;
      turn.answer = event.result as Json;
      turn.answerBytes = event.resultBytes;
      turn.streamed = "";
      turn.error = undefined;
      if (!isObject(state)) return;
      turn.usage = usageIn(state.usage);
      if (turn.usage) add(talks.get(path)!.usage, turn.usage);
      turn.model = textIn(state.model);
      turn.finishReason = textIn(state.finishReason);
      turn.invalid = textIn(state.invalid);
      if (turn.invalid === undefined && Array.isArray(state.calls))
        turn.calls = state.calls.filter(isObject).map((call, i) => ({
          number: i,
          name: textIn(call.name) ?? "",
          args: call.arguments ?? null,
          status: "pending",
        }));
    } else if (event.kind === "step.failed" || event.kind === "step.cancelled") {
      turn.status = event.kind === "step.failed" ? "failed" : "cancelled";
      turn.endedAt = event.at;
      turn.error = event.error?.message;
    }
  }

  function hearCall(turn: Turn, number: number, path: string, event: FeedEvent): void {
    const call = turn.calls[number];
    if (!call) return;
    const rest = event.path!.slice(path.length);
    const what = event.kind.slice(event.kind.indexOf(".") + 1);
    if (rest === "") {
      if (what === "started") {
        call.path = path;
        call.status = "running";
        call.startedAt ??= event.at;
      } else if (what === "completed" || what === "failed" || what === "cancelled") {
        call.status = what;
        call.endedAt = event.at;
        call.error = event.error?.message;
        if (event.result !== undefined) call.result = event.result as Json;
      }
    } else if (rest === ":node0:approve" && event.kind === "step.started") call.approval ??= { askedAt: event.at };
    else if (event.kind === "step.completed") call.result = IN_SEQUENCE.test(rest) ? (event.result as Json) : undefined;
  }

  function hearSignal(event: FeedEvent): void {
    const found = CALL.exec((event.name ?? "").slice("approve:".length));
    const call = found && turnAt(found[1]!, Number(found[2]))?.calls[Number(found[3])];
    if (!call?.approval || call.approval.approved !== undefined) return;
    const payload = event.payload as Json | undefined;
    call.approval.approved = isObject(payload) && payload.approved === true;
    call.approval.at = event.at;
    call.approval.by = event.by;
    if (isObject(payload)) call.approval.reason = textIn(payload.reason);
  }

  for (const event of events) {
    if (event.kind === "signal.received" && event.name?.startsWith("approve:")) hearSignal(event);
    if (!event.path) continue;
    const turn = TURN.exec(event.path);
    if (turn && isChat(turn[1]!)) {
      hearTurn(turn[1]!, Number(turn[2]), event);
      continue;
    }
    const call = CALL.exec(event.path);
    const asked = call && turnAt(call[1]!, Number(call[2]));
    if (asked) hearCall(asked, Number(call[3]), call[0], event);
  }
  return [...talks.values()];
}

/** A file that a prompt was sent with: what is recorded of it. */
export interface Attached {
  name: string;
  type: string;
  bytes: number;
  sha256: string;
}

export function attachedIn(value: Json | undefined): Attached[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).map((file) => ({
    name: textIn(file.name) ?? "",
    type: textIn(file.type) ?? "",
    bytes: numberIn(file.bytes),
    sha256: textIn(file.sha256) ?? "",
  }));
}

/** 1,234 in · 56 out · 0.0012 */
export function sayingOfUsage({ inputTokens, outputTokens, cost }: Usage): string {
  const tokens = `${inputTokens.toLocaleString("en")} tokens in, ${outputTokens.toLocaleString("en")} out`;
  return cost === undefined ? tokens : `${tokens}, cost ${Number(cost.toPrecision(4))}`;
}
