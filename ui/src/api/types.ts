/* The documents of Rival's HTTP API, as the UI reads them. Times are milliseconds since 1970; a time
 * that has not come yet is absent. docs/reference/http-api.md says more about each. */
import type { LosslessNumber } from "lossless-json";
import type * as api from "./generated";

export type Json = null | boolean | number | LosslessNumber | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/* The documents are the server's to describe; generated.ts has them as it does (npm run api-types). */
export type RunStatus = api.RunStatus;
export const RUN_STATUSES = [
  "running",
  "suspended",
  "completed",
  "failed",
  "cancelled",
] as const satisfies readonly RunStatus[];
export type NodeStatus = api.Node["status"];
export type Status = RunStatus | NodeStatus;

export type Session = api.Session;
export type Role = Session["role"];

export type RunError = api.Error;
/** What waits for a decision. */
export type Suspension = api.Suspension;
export type Decision = Suspension["actions"][number];

/* ---- workflows ---- */

export interface WorkflowSummary extends api.Workflow {
  inputSchema?: JsonSchema | null;
}

export interface Workflow extends WorkflowSummary {
  plan: Plan;
}

export type WorkflowSource = api.Source;

export type JsonSchema = JsonObject | boolean;

/** A node of a plan. Which of the fields are there follows from `type`. */
export type PlanNode = api.PlanNode;
export type PlanState = api.PlanState;
export type Plan = Omit<api.Plan, "type" | "alias">;

/* ---- runs ---- */

export type RunSummary = api.Run;
export type RunPageOf = api.RunList;
export type Run = Omit<api.RunDetail, "steps">;
export type RunStarted = api.RunRef;
export type Counts = api.RunCounts;
export type Members = api.Members;
export type Member = api.Member;
export type Overview = api.Overview;
export type WorkflowFared = api.WorkflowFared;
export type LongWaiting = api.LongWaiting;
export type BulkPiece = api.Bulk;

/* ---- nodes of a run ---- */

export type RunNode = api.Node;
export type Iterations = api.Iterations;
export type RunNodes = api.NodeList;
export type Attempt = api.Attempt;
/** One node with everything: what a card shows. */
export type RunNodeDetail = api.NodeDetail;

/* ---- attachments ---- */

export type Attachment = api.Attachment;
export type Attachments = api.AttachmentList;
export type AttachmentDetail = api.AttachmentDetail;
export const ATTACHMENT_STATUSES = [
  "init",
  "running",
  "finished",
  "errored",
  "skipped",
] as const satisfies readonly Attachment["status"][];

/* ---- why, logs ---- */

export type Why = api.Why;
export type Wait = api.Wait;

export type LogLine = api.LogLine;
export type LogLevel = LogLine["level"];
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const satisfies readonly LogLevel[];
export type Logs = api.LogList;

/* ---- events ---- */

/** What the feed tells. `kind` is run.started, step.completed, log, …; which fields there are follows from it. */
export type FeedEvent = api.Event;
export type History = api.History;

/* ---- refusals ---- */

export type Problem = Omit<api.Problem, "type" | "detail"> & Partial<Pick<api.Problem, "type" | "detail">>;
/** `path`: a JSON pointer into the input. */
export type Violation = api.Violation;
