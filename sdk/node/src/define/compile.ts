/** compile.ts: `compileWorkflow`: the plan as the original shows it, and the actors with their functions. */
import { WorkflowDefinitionError } from "../errors.js";
import type {
  Actor,
  BodyDefinition,
  CompiledWorkflow,
  NodeDefinition,
  PlanNode,
  StepConfig,
  StepDefinition,
  StepPlanNode,
} from "../types.js";
import { checked, definitionOf, type Workflow } from "./definition.js";
import { Names } from "./names.js";
import { isDefinition, isReference } from "./normalize.js";

/** A compiled workflow: pure data (`plan`), and what it refers to by name (`actors`). */
export function compileWorkflow(workflow: Workflow): CompiledWorkflow {
  const definition = checked(definitionOf(workflow, "compileWorkflow"));
  const compiler = new Compiler(definition.name);
  const names = new Names(definition.name);
  const coordinatorActorRef = names.coordinator();
  compiler.actor(coordinatorActorRef, { type: "coordinator" });
  const plan = compiler.nodes(definition.steps, names);
  if (compiler.faults.length > 0) throw new WorkflowDefinitionError(definition.name, compiler.faults);
  return {
    name: definition.name,
    plan,
    actors: compiler.actors,
    coordinatorActorRef,
    ...(definition.inputSchema === undefined ? {} : { inputSchema: definition.inputSchema }),
    ...(definition.description === undefined ? {} : { description: definition.description }),
  };
}

class Compiler {
  readonly actors: Record<string, Actor> = {};
  readonly faults: { path: string; message: string }[] = [];
  private readonly chain: string[];

  constructor(name: string) {
    this.chain = [name];
  }

  actor(name: string, actor: Actor): string {
    const other = Object.hasOwn(this.actors, name) ? this.actors[name] : undefined;
    if (other !== undefined && (other.type !== actor.type || other.run !== actor.run))
      this.faults.push({ path: "", message: `Duplicate actor name '${name}'` });
    this.actors[name] = actor;
    return name;
  }

  nodes(nodes: NodeDefinition[], names: Names): PlanNode[] {
    return nodes.map((node) => this.node(node, names));
  }

  private node(node: NodeDefinition, names: Names): PlanNode {
    const { id, alias } = node;
    switch (node.type) {
      case undefined:
        return this.step(node, names);
      case "forEach": {
        const inside = names.below("loop", alias);
        const { items } = node;
        return {
          type: "loop",
          id,
          alias,
          iteratorActorRef: this.actor(inside.of("iterator"), {
            type: "iterator",
            ...(typeof items === "function" ? { run: items } : {}),
          }),
          loopCoordinatorActorRef: this.actor(inside.of("coordinator"), { type: "coordinator" }),
          run: this.body(node.run, inside.below("run")),
          ...(node.parallel === undefined ? {} : { parallel: node.parallel }),
          ...(node.concurrency === undefined ? {} : { concurrency: node.concurrency }),
        };
      }
      case "loop": {
        const inside = names.below("loop", alias);
        return {
          type: "loop",
          id,
          alias,
          conditionActorRef: this.actor(inside.of("condition"), { type: "condition", run: (node.while ?? node.until)! }),
          test: node.while === undefined ? "until" : "while",
          loopCoordinatorActorRef: this.actor(inside.of("coordinator"), { type: "coordinator" }),
          run: this.body(node.body, inside.below("run")),
          ...(node.maxIterations === undefined ? {} : { maxIterations: node.maxIterations }),
        };
      }
      case "concurrent": {
        const inside = names.below("parallel", alias);
        return {
          type: "parallel",
          id,
          alias,
          continueOn: node.continueOn,
          onFailure: node.onFailure,
          ...(node.join === undefined ? {} : { join: node.join }),
          parallelCoordinatorActorRef: this.actor(inside.of("coordinator"), { type: "coordinator" }),
          steps: node.steps.flatMap((child) =>
            "nodes" in child
              ? this.nodes(child.nodes, inside.below("step", child.alias))
              : [this.node(child, inside.below("step"))],
          ),
        };
      }
      case "branch": {
        const inside = names.below("branch", alias);
        return {
          type: "branch",
          id,
          alias,
          conditionActorRef: this.actor(inside.of("condition"), { type: "condition", run: node.if }),
          branchCoordinatorActorRef: this.actor(inside.of("coordinator"), { type: "coordinator" }),
          then: this.nodes(node.then, inside.below("then")),
          else: this.nodes(node.else ?? [], inside.below("else")),
        };
      }
      case "workflow": {
        if (!isDefinition(node.workflow)) {
          const target = String((node.workflow as { target: unknown }).target);
          return { type: "workflow", id, alias, workflow: target, coordinatorActorRef: `${alias}_coordinator`, plan: [] };
        }
        const inner = node.workflow;
        if (this.chain.includes(inner.name)) {
          this.faults.push({ path: alias, message: `workflow '${inner.name}' contains itself` });
          return { type: "workflow", id, alias, workflow: inner.name, coordinatorActorRef: "", plan: [] };
        }
        const inside = names.nested(inner.name);
        const coordinatorActorRef = this.actor(inside.coordinator(), { type: "coordinator" });
        this.chain.push(inner.name);
        const plan = this.nodes(inner.steps, inside);
        this.chain.pop();
        return { type: "workflow", id, alias, workflow: inner.name, coordinatorActorRef, plan };
      }
    }
  }

  private step(node: StepDefinition, names: Names): PlanNode {
    const options = node.config?.actor?.options;
    const config = node.config === undefined ? undefined : planConfig(node.config);
    return {
      type: "step",
      id: node.id,
      alias: node.alias,
      actorRef: this.actor(names.of(node.alias), {
        type: "step",
        run: node.run,
        ...(options === undefined ? {} : { options }),
      }),
      ...(config === undefined ? {} : { config }),
    };
  }

  private body(body: BodyDefinition, names: Names): PlanNode[] {
    if (Array.isArray(body)) return this.nodes(body, names);
    if (isDefinition(body)) return this.nodes(body.steps, names);
    if (isReference(body)) return [];
    return [this.node(body as NodeDefinition, names)];
  }
}

/** The part of a config that is data. */
function planConfig(config: StepConfig): StepPlanNode["config"] {
  const { onError, when, description, ...rest } = config;
  const data = typeof description === "string" ? { ...rest, description } : rest;
  return Object.keys(data).length > 0 ? data : undefined;
}
