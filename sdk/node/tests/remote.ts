// remote.ts URL ADMIN_TOKEN WORKER_TOKEN: a process that offers a workflow to a server over TCP, runs it, and tells how that went.
import { createWorkflow, rival, StepError } from "rival";
import { z } from "zod";

const [url, token, workerToken] = process.argv.slice(2) as [string, string, string];
let tries = 0;
const workflow = createWorkflow("remote")
  .input(z.object({ n: z.coerce.number() }))
  .step("items", ({ input }) => Array.from({ length: input.n }, (_, i) => i))
  .forEach("each", { items: ({ steps }) => steps.items.result, run: ({ loop }: any) => loop.item * 2, parallel: true })
  .step("again", () => {
    if (++tries < 2) throw new StepError("not yet", { behavior: "retry", maxAttempts: 2 });
    return tries;
  });
const engine = rival({ url, token, workerToken }, workflow);
try {
  const { runId } = await engine.run("remote", { n: "3" });
  const { status, results } = await engine.wait("remote", runId);
  const answer = await fetch(new URL("api/v1/workers", `${url}/`), { headers: { authorization: `Bearer ${token}` } });
  const { connections } = (await answer.json()) as { connections: { local: boolean }[] };
  const doubled = results.each?.result.iterations.map((one: { results: { run: { result: number } } }) => one.results.run.result);
  console.log(JSON.stringify({ status, doubled, again: results.again?.result, local: connections.map((one) => one.local) }));
} catch (error) {
  console.log(JSON.stringify({ refused: (error as Error).message }));
}
await engine.close();
