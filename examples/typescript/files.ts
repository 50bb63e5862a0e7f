// files.ts: the workflows of a folder, in one program: node --import rival/register files.ts, or bun files.ts
import { registerWorkflowsFromDirectory, rival } from 'rival'

// Automatically discover and register all workflow files
registerWorkflowsFromDirectory('./workflows')

const engine = rival()
await engine.ready()
const inputs = { alert: { priority: 'low' } }
const tree = { treeType: 'oak', location: 'forest' }
for (const { name, inputSchema } of engine.registered()) {
    if (name === 'predefined') continue // it needs the network
    const { runId } = await engine.run(name, inputs[name] ?? (inputSchema && tree))
    const outcome = await engine.wait(name, runId)
    const results = Object.entries(outcome.results).map(([alias, { result, status }]) => `${alias}=${status === 'skipped' ? 'skipped' : JSON.stringify(result)}`)
    console.log(`${name} ${outcome.status} ${results.join(' ')}`)
}
await engine.close()
