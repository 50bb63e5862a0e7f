// builder.ts: workflows made by calls, in one program: node --import rival/register builder.ts, or bun builder.ts
import { createWorkflow, delayStep, httpStep, rival, WorkflowRegistry } from 'rival'
import { z } from 'zod'

const findTree = ({ input }) => ({ treeId: `${input?.treeType ?? 'oak'}-123` })
const chopTree = ({ steps }) => ({ pieces: steps.findTree.result.treeId.length })
const processTree = ({ lastStep }) => ({ lumber: lastStep.result.pieces })
const customErrorHandler = ({ error }) => console.log(error.message)
const slackError = customErrorHandler
const validateOrder = ({ input }) => ({ isValid: input === undefined || input.quantity > 0 })
const processPayment = () => ({ paid: true })

// --- the builder
{
    const workflow = createWorkflow('myWorkflow')
        .input(z.object({
            treeType: z.string(),
            location: z.string().optional()
        }))
        .step(findTree)
        .step(chopTree)
        .register()
}

// --- an input schema
{
    const workflow = createWorkflow('processOrder')
        .input(z.object({
            orderId: z.string().uuid(),
            quantity: z.number().min(1),
            priority: z.enum(['low', 'medium', 'high']).optional()
        }))
        .step(validateOrder)
        .step(processPayment)
        .register()
}

// --- the complete example
{
    const workflow = createWorkflow('treeProcessing')
        .input(z.object({
            treeType: z.string(),
            location: z.string()
        }))
        .steps([
            { fn: findTree, timeout: 30000, onTimeout: 'retry', maxAttempts: 3 },
            { fn: chopTree },
            { fn: processTree, onError: customErrorHandler }
        ])
        .register()
}

// --- one by one, with options, as a list
{
    const workflow = createWorkflow('oneByOne')
    workflow.step(findTree)
    workflow.step(chopTree)
    workflow.register()
}
{
    const workflow = createWorkflow('withOptions')
    workflow.steps([
        { fn: findTree, timeout: 30000, onTimeout: 'retry', maxAttempts: 3 },
        { fn: chopTree, onError: slackError },
        { fn: processTree }
    ])
    workflow.register()
}
{
    const workflow = createWorkflow('list')
    workflow.steps([findTree, chopTree, processTree])
    workflow.register()
}
{
    const notifyPaymentTeam = customErrorHandler
    const workflow = createWorkflow('handled')
    workflow.step({ fn: processPayment, onError: notifyPaymentTeam })
    workflow.register()
}

// --- predefined steps: built, not run: they need the network, and time; testing.ts runs them
{
    const workflow = createWorkflow('predefinedSteps')
    workflow.step(httpStep({ url: 'https://api.example.com', method: 'GET' }))
    workflow.step(delayStep({ seconds: 20 }))
    workflow.build()
}

// --- branches, loops, side by side
const shipOrder = () => 'shipped'
const notifyCustomer = () => 'told'
const cancelOrder = () => 'cancelled'
{
    const workflow = createWorkflow('branching')
    workflow
        .step(validateOrder)
        .branch({
            name: 'checkValid',
            if: ({ steps }) => steps.validateOrder.result.isValid,
            then: [processPayment, shipOrder],
            else: [notifyCustomer, cancelOrder]
        })
    workflow.register()
}
{
    const fetchBatch = () => ({ batch: 0 })
    const processBatch = ({ loop }) => ({ processed: loop.index })
    const fetchNextBatch = ({ loop }) => ({ done: loop.index === 2 })
    const workflow = createWorkflow('looping')
    workflow
        .step(fetchBatch)
        .loop({
            name: 'processBatches',
            body: [processBatch, fetchNextBatch],
            until: ({ steps }) => steps.fetchNextBatch.result.done
        })
    workflow.register()
}
{
    const sendEmail = () => 'email'
    const sendSms = () => 'sms'
    const updateCRM = () => 'crm'
    const finalize = ({ steps }) => Object.keys(steps.notifications.result)
    const workflow = createWorkflow('sideBySide')
    workflow
        .step(validateOrder)
        .parallel({
            name: 'notifications',
            steps: [sendEmail, sendSms, updateCRM]
        })
        .step(finalize)
    workflow.register()
}

const engine = rival()
const inputs = {
    myWorkflow: { treeType: 'oak' },
    processOrder: { orderId: '7b1c2a34-5d6e-4f70-8a9b-0c1d2e3f4a5b', quantity: 2 },
    treeProcessing: { treeType: 'elm', location: 'forest' },
}
for (const { name } of engine.registered()) {
    // Generate unique run ID (timestamp or UUID)
    const runId = `${name}-run-${Date.now()}`
    await engine.run(name, inputs[name], runId)
    const outcome = await engine.wait(name, runId)
    const results = Object.entries(outcome.results).map(([alias, { result }]) => `${alias}=${JSON.stringify(result)}`)
    console.log(`${name} ${outcome.status} ${results.join(' ')}`)
}

// Refused input: a ZodError, and no run.
try {
    await engine.run('processOrder', { orderId: 'x', quantity: 0 })
} catch (error) {
    console.log(`${error.name} ${error.issues.map((issue) => issue.path.join('.')).join(' ')}`)
}
await engine.close()

// --- the registry
const registry = new WorkflowRegistry()
registry.register(createWorkflow('slow').step('wait', ({ signal }) => new Promise((done) => signal.addEventListener('abort', done))))
console.log(registry.list().map(({ name, stepCount }) => `${name}:${stepCount}`).join(' '))
const { runId } = await registry.launch('slow', {})
console.log((await registry.getActiveRuns('slow')).map((run) => run.status).join())

// From backend
const workflowActor = registry.getWorkflow(runId)
await workflowActor.cancel()
console.log((await workflowActor.wait()).status)

// From frontend (via registry)
await registry.cancel(runId)
await registry.close()
