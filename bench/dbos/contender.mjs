// contender.mjs dbos|rival DATABASE [RIVAL]: the contenders of bench_dbos.c that are written in TypeScript: workflows of one and of ten steps
// that do nothing.
//
// A line "STEPS IN_FLIGHT MS" on stdin: so many loops start a workflow and wait for its result until the time is over. The answer is a
// line: workflows a second, and the median of what one took, in milliseconds.
import { createInterface } from "node:readline";

const [kind, database, bin] = process.argv.slice(2);
const LENGTHS = [1, 10];

/** For each length, a function that runs one workflow to its end. */
async function openDbos() {
  const { DBOS } = await import("@dbos-inc/dbos-sdk");
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: database, systemDatabasePoolSize: 20, logLevel: "error" });
  const runs = LENGTHS.map((length) => {
    const body = async () => {
      for (let i = 0; i < length; i++) await DBOS.runStep(async () => i, { name: `s${i}` });
    };
    return [length, DBOS.registerWorkflow(body, { name: `steps${length}` })];
  });
  await DBOS.launch();
  return { runs: new Map(runs), close: () => DBOS.shutdown() };
}

async function openRival() {
  const { createWorkflow, rival } = await import("../../sdk/node/dist/index.js");
  const workflows = LENGTHS.map((length) => {
    const workflow = createWorkflow(`steps${length}`);
    for (let i = 0; i < length; i++) workflow.step(`s${i}`, () => i);
    return workflow;
  });
  const engine = rival({ store: database, bin }, ...workflows);
  const run = async (name) => {
    const { runId } = await engine.run(name);
    const { status } = await engine.wait(name, runId);
    if (status !== "completed") throw new Error(`${name} ${runId} is ${status}`);
  };
  return { runs: new Map(LENGTHS.map((length) => [length, () => run(`steps${length}`)])), close: () => engine.close() };
}

async function measure(run, inFlight, ms) {
  const took = [];
  const start = performance.now();
  const loop = async () => {
    for (;;) {
      const before = performance.now();
      if (before - start >= ms) return;
      await run();
      took.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  took.sort((a, b) => a - b);
  return [(took.length * 1000) / (performance.now() - start), took[took.length >> 1]];
}

const { runs, close } = await (kind === "dbos" ? openDbos() : openRival());
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [steps, inFlight, ms] = line.split(" ").map(Number);
  console.log((await measure(runs.get(steps), inFlight, ms)).join(" "));
}
await close();
