// node_worker.mjs SOCKET: the worker of bench_worker.c in Node.js: workflows of steps that do nothing, as the npm package runs them.
import { createWorkflow } from "../sdk/node/dist/index.js";
import { lowerWorkflow } from "../sdk/node/dist/define/lower.js";
import { Connection } from "../sdk/node/dist/worker/connection.js";

const STEPS = 10;
const ten = createWorkflow("node-ten");
for (let i = 0; i < STEPS; i++) ten.step(`s${i}`, () => null);
const each = createWorkflow("node-items").forEach("each", { items: ({ input }) => input, run: () => null, parallel: true });
const connection = new Connection({
  address: () => Promise.resolve({ path: process.argv[2] }),
  credits: 256,
  offers: [ten, each].map((workflow) => lowerWorkflow(workflow.build())),
  functions: new Map(),
});
await connection.open();
await connection.over();
