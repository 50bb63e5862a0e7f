/* ChatTab.tsx: the chats of a run as conversations: prompts, answers as they come, tools, approvals, tokens, cost. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { api } from "../../api/client";
import { isObject } from "../../api/json";
import type { Json } from "../../api/types";
import { runPath } from "../../app/paths";
import { formatBytes } from "../../parts/bytes";
import { Empty } from "../../parts/Empty";
import { ErrorBlock } from "../../parts/ErrorBlock";
import { Failure } from "../../parts/Failure";
import { JsonView } from "../../parts/JsonView";
import { Loading } from "../../parts/Loading";
import { StatusBadge } from "../../parts/StatusBadge";
import { formatClock } from "../../parts/time";
import { Duration } from "../../parts/Time";
import { useHistory } from "../history/useHistory";
import { useRunLive } from "../live";
import { useRunPlan } from "../nodes/shared";
import { boxAt, wayText } from "../plan";
import "./chat.css";
import {
  attachedIn,
  sayingOfUsage,
  talksOf,
  type Approval,
  type Attached,
  type Call,
  type Talk,
  type Turn,
} from "./talk";

export function ChatTab() {
  const { runId } = useRunLive();
  const { events, isCut, isEmpty, error, retry } = useHistory(runId);
  const { plan } = useRunPlan();
  const [params, setParams] = useSearchParams();
  const talks = useMemo(
    () => talksOf(events, (path) => boxAt(plan.boxes, path)?.type === "chat"),
    [events, plan.boxes],
  );
  if (error) return <Failure error={error} retry={retry} />;
  if (isEmpty) return <Loading what="the conversations" />;
  if (talks.length === 0)
    return (
      <Empty icon="list" title="No chat has begun">
        <p>What is said to a model, and what it answers, is here once a chat of this run asks it.</p>
      </Empty>
    );
  const talk = talks.find((each) => each.path === params.get("chat")) ?? talks[0]!;
  return (
    <div className="chats">
      {talks.length > 1 && (
        <label className="inline-field chat-choice">
          Chat
          <select
            value={talk.path}
            onChange={(event) => setParams(new URLSearchParams({ chat: event.target.value }), { replace: true })}
          >
            {talks.map((each) => (
              <option key={each.path} value={each.path}>
                {wayText(plan.boxes, each.path)}
              </option>
            ))}
          </select>
        </label>
      )}
      {isCut && <p className="muted">This run has more events than are read here: rival audit tells all.</p>}
      <Conversation talk={talk} name={wayText(plan.boxes, talk.path)} />
    </div>
  );
}

function Conversation({ talk, name }: { talk: Talk; name: string }) {
  const { runId } = useRunLive();
  const first = talk.conversations[0]?.[0];
  // What it was asked is recorded with the first request, on disk within a moment of its beginning.
  const asked = useQuery({
    queryKey: ["asked", runId, talk.path, first?.status],
    queryFn: ({ signal }) => api.node(runId, `${talk.path}:turn1`, signal),
    refetchInterval: (query) => (first?.status === "running" && !promptIn(query.state.data) ? 300 : false),
  });
  const given = promptIn(asked.data);
  const turns = talk.conversations.flat().length;
  return (
    <section className="card chat" aria-label={`Conversation of ${name}`}>
      <header className="chat-head">
        <h2>{name}</h2>
        <span className="muted">
          {turns === 1 ? "1 turn" : `${turns} turns`} · {sayingOfUsage(talk.usage)}
        </span>
      </header>
      <ol className="chat-turns">
        {given?.system !== undefined && (
          <Said who="system" text={given.system}>
            system
          </Said>
        )}
        {given && (
          <Said who="user" text={given.prompt ?? ""} files={given.attached}>
            user
          </Said>
        )}
        {talk.conversations.map((conversation, i) => (
          <ConversationTurns key={i} turns={conversation} number={talk.conversations.length > 1 ? i + 1 : undefined} />
        ))}
      </ol>
    </section>
  );
}

interface Given {
  system?: string;
  prompt?: string;
  attached: Attached[];
}

function promptIn(detail: { attempts: readonly { input?: unknown }[] } | undefined): Given | undefined {
  const input = detail?.attempts.findLast((attempt) => attempt.input !== undefined)?.input as Json | undefined;
  if (!isObject(input) || input.prompt === undefined) return undefined;
  return {
    prompt: typeof input.prompt === "string" ? input.prompt : undefined,
    system: typeof input.system === "string" ? input.system : undefined,
    attached: attachedIn(input.attached),
  };
}

function ConversationTurns({ turns, number }: { turns: readonly Turn[]; number: number | undefined }) {
  return (
    <>
      {number !== undefined && (
        <li className="chat-again muted">
          {number === 1 ? "First conversation" : `Conversation ${number}: begun anew`}
        </li>
      )}
      {turns.map((turn, i) => (
        <TurnView key={turn.path} turn={turn} isLast={i === turns.length - 1} />
      ))}
    </>
  );
}

interface SaidProps {
  who: string;
  text: string;
  files?: readonly Attached[];
  children: ReactNode;
}

function Said({ who, text, files = [], children }: SaidProps) {
  return (
    <li className={`chat-said chat-${who}`}>
      <div className="chat-who">{children}</div>
      {files.length > 0 && (
        <ul className="chat-files" aria-label="Attached files">
          {files.map((file, i) => (
            <li key={i} title={`sha256 ${file.sha256}`}>
              {file.name} · {file.type} · {formatBytes(file.bytes)}
            </li>
          ))}
        </ul>
      )}
      <div className="chat-text">{text}</div>
    </li>
  );
}

function TurnView({ turn, isLast }: { turn: Turn; isLast: boolean }) {
  const { runId } = useRunLive();
  return (
    <>
      <li className="chat-said chat-assistant" aria-label={`Turn ${turn.number}`}>
        <div className="chat-who">
          <Link href={runPath(runId, `/nodes?${new URLSearchParams({ node: turn.path }).toString()}`)}>
            turn {turn.number}
          </Link>
          {turn.status !== "completed" && <StatusBadge status={turn.status} />}
          {turn.model && <span>{turn.model}</span>}
          {turn.usage && <span>{sayingOfUsage(turn.usage)}</span>}
          <Duration from={turn.startedAt} to={turn.endedAt} />
          {turn.finishReason && turn.finishReason !== "stop" && turn.finishReason !== "end_turn" && (
            <span>ended with {turn.finishReason}</span>
          )}
        </div>
        <Answer turn={turn} />
        {turn.error !== undefined && <ErrorBlock label="Error" text={turn.error} />}
        {turn.calls.length > 0 && (
          <ul className="chat-calls" aria-label={`Tools of turn ${turn.number}`}>
            {turn.calls.map((call) => (
              <CallView key={call.number} call={call} isOver={!isLast} />
            ))}
          </ul>
        )}
      </li>
      {turn.invalid !== undefined && (
        <Said who="user" text={turn.invalid}>
          told to the model
        </Said>
      )}
    </>
  );
}

function Answer({ turn }: { turn: Turn }) {
  if (turn.status === "running")
    return (
      <div className="chat-text chat-stream" aria-busy="true">
        {turn.streamed || <span className="muted">waiting for the answer …</span>}
      </div>
    );
  if (turn.answerBytes !== undefined && turn.answer === undefined)
    return <p className="muted">{turn.answerBytes.toLocaleString("en")} bytes: see its node.</p>;
  if (typeof turn.answer === "string") return <div className="chat-text">{turn.answer}</div>;
  if (turn.answer !== undefined && turn.answer !== null) return <JsonView value={turn.answer} label="the answer" />;
  // Of one that broke off, what had come is all there is.
  return turn.streamed ? <div className="chat-text">{turn.streamed}</div> : null;
}

function CallView({ call, isOver }: { call: Call; isOver: boolean }) {
  const { runId } = useRunLive();
  const unknown = call.path === undefined && isOver;
  return (
    <li className="chat-call" aria-label={`Call of ${call.name}`}>
      <div className="chat-who">
        {call.path ? (
          <Link href={runPath(runId, `/nodes?${new URLSearchParams({ node: call.path }).toString()}`)}>
            {call.name}
          </Link>
        ) : (
          <span>{call.name}</span>
        )}
        {!unknown && <StatusBadge status={call.status} />}
        {call.startedAt !== undefined && <Duration from={call.startedAt} to={call.endedAt} />}
      </div>
      <JsonView value={call.args} label={`arguments of ${call.name}`} />
      {call.approval && <ApprovalLine approval={call.approval} />}
      {unknown && <p className="muted">There is no tool of this name. The model was told so.</p>}
      {call.error !== undefined && <ErrorBlock label="Error, told to the model" text={call.error} />}
      {call.error === undefined && call.result !== undefined && (
        <div className="chat-result">
          <span className="chat-who">result</span>
          {typeof call.result === "string" ? (
            <div className="chat-text">{call.result}</div>
          ) : (
            <JsonView value={call.result} label={`result of ${call.name}`} />
          )}
        </div>
      )}
    </li>
  );
}

function ApprovalLine({ approval }: { approval: Approval }) {
  if (approval.approved === undefined)
    return <p className="chat-asks">Waits for somebody to approve this call, since {formatClock(approval.askedAt)}.</p>;
  return (
    <p className={approval.approved ? "chat-yes" : "chat-no"}>
      {approval.approved ? "Approved" : "Rejected"}
      {approval.by && ` by ${approval.by}`}
      {approval.at !== undefined && `, ${formatClock(approval.at)}`}
      {approval.reason && `: ${approval.reason}`}
    </p>
  );
}
