// testing.ts: workflows under test: requests are replaced, and time is skipped: node --import rival/register testing.ts, or bun testing.ts
import { createWorkflow, delayStep, httpStep, registerWorkflowFile, testEngine } from 'rival'

registerWorkflowFile('./workflows/predefined.ts')

const workflow = createWorkflow('predefinedSteps')
workflow.step(httpStep({ url: 'https://api.example.com', method: 'GET' }))
workflow.step(delayStep({ seconds: 20 }))

const engine = testEngine({ seed: 1 }, workflow)
await engine.replace('httpRequest', () => ({ status: 200, data: { found: true } }))
for (const name of ['predefined', 'predefinedSteps']) {
    const { runId } = await engine.run(name)
    const { status, results } = await engine.wait(name, runId)
    console.log(name, status, Object.keys(results).join(' '), results.delay.result.delayedMs)
}
await engine.close()
