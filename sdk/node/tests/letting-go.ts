// letting-go.ts: a program of its own, since the test runner takes rejections for its own.
import { Connection } from "../dist/worker/connection.js";
import { invoke, ScriptedEngine } from "./scripted.js";

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const functions = {
  floats: async () => {
    void (async () => {
      await pause(5);
      throw new Error("nobody waited");
    })();
    await pause(1000);
  },
  other: async () => {
    await pause(50);
    return "fine";
  },
};

const engine = await ScriptedEngine.start();
const worker = new Connection({
  address: () => Promise.resolve({ path: engine.path }),
  credits: 10,
  offers: [{ plan: { name: "w" }, functions: new Map(Object.entries(functions).map(([name, fn]) => [name, { fn }])) }],
  functions: new Map(),
});
const open = worker.open();
await engine.greet();
await open;
if (process.argv[2] === "program") {
  void Promise.reject(new Error("not a step's"));
  await pause(5000);
}
engine.send(invoke("other"), invoke("floats"), invoke("other"));
const error = await engine.next("error");
console.log(`floats: ${(error.error as { message: string }).message}`);
for (let i = 0; i < 2; i++) console.log(`other: ${String((await engine.next("result")).result)}`);
await worker.close(0);
await engine.stop();
