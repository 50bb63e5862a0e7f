// one-file.ts: a workflow file by its path, launched by a registry: node --import rival/register one-file.ts, or bun one-file.ts
import { registerWorkflowFile, WorkflowRegistry } from 'rival'

// Register a specific workflow file
registerWorkflowFile('./workflows/tree-processing.ts')

const workflowRegistry = new WorkflowRegistry()
try {
    await workflowRegistry.launch('tree-processing', { treeType: 1 })
} catch (error) {
    console.log(`${error.name} ${error.issues.map((issue) => issue.path.join('.')).join(' ')}`)
}
const { runId } = await workflowRegistry.launch('tree-processing', { treeType: 'oak' })
const { status, results } = await workflowRegistry.getWorkflow(runId).wait()
console.log(status, results.chopTree.state.description)
const [{ name, stepCount, version, source }] = workflowRegistry.list()
console.log(name, stepCount, version.length, source.endsWith('workflows/tree-processing.ts'))
await workflowRegistry.close()
