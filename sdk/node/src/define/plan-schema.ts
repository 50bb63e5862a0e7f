/** plan-schema.ts: the compiled plan as a Zod schema, for programs that read plans from elsewhere. */
import { z } from "zod";
import type { PlanNode } from "../types.js";

const head = { id: z.string().min(1), alias: z.string().min(1) };
const nodes = z.lazy(() => z.array(planNode));
const positive = z.number().int().positive();

const config = z.object({
  timeout: positive.optional(),
  onTimeout: z.enum(["stop", "retry"]).optional(),
  maxAttempts: positive.optional(),
  backoff: z.enum(["linear", "exponential"]).optional(),
  backoffBaseMs: z.number().nonnegative().optional(),
  maxBackoffMs: z.number().nonnegative().optional(),
  jitter: z.number().min(0).max(1).optional(),
  retryOn: z.array(z.union([z.number(), z.string()])).optional(),
  noRetryOn: z.array(z.union([z.number(), z.string()])).optional(),
  continueOnError: z.boolean().optional(),
  needs: z.array(z.string()).optional(),
  description: z.string().optional(),
  actor: z.object({ options: z.looseObject({ actionTimeout: positive.optional() }).optional() }).optional(),
});

const step = z.strictObject({ type: z.literal("step"), ...head, actorRef: z.string(), config: config.optional() });
const forEach = z.strictObject({
  type: z.literal("loop"),
  ...head,
  iteratorActorRef: z.string(),
  loopCoordinatorActorRef: z.string(),
  run: nodes,
  parallel: z.boolean().optional(),
  concurrency: positive.optional(),
});
const loop = z.strictObject({
  type: z.literal("loop"),
  ...head,
  conditionActorRef: z.string(),
  test: z.enum(["while", "until"]),
  loopCoordinatorActorRef: z.string(),
  run: nodes,
  maxIterations: positive.optional(),
});
const parallel = z.strictObject({
  type: z.literal("parallel"),
  ...head,
  continueOn: z.enum(["all", "detached"]),
  onFailure: z.enum(["fail", "collect"]),
  join: z.union([z.literal("all"), z.literal("first"), positive]).optional(),
  parallelCoordinatorActorRef: z.string(),
  steps: nodes,
});
const branch = z.strictObject({
  type: z.literal("branch"),
  ...head,
  conditionActorRef: z.string(),
  branchCoordinatorActorRef: z.string(),
  then: nodes,
  else: nodes,
});
const workflow = z.strictObject({
  type: z.literal("workflow"),
  ...head,
  workflow: z.string(),
  coordinatorActorRef: z.string(),
  plan: nodes,
});

const planNode: z.ZodType<PlanNode> = z.union([step, forEach, loop, parallel, branch, workflow]) as z.ZodType<PlanNode>;

/** The plan of a compiled workflow: `planSchema.parse(compileWorkflow(…).plan)`. */
export const planSchema: z.ZodType<PlanNode[]> = z.array(planNode);
