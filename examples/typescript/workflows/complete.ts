// workflows/tree-processing.ts
import { z } from 'zod'
import { workflow } from 'rival'
import { findTree } from './steps/tree-steps'

// Configuration
export const input = z.object({
    treeType: z.string(),
    location: z.string()
})

function chopTree({ steps, state }) {
    state.description = `Chopped ${steps.findTree.result.treeId}`
    return { chopped: true }
}

// Nested workflow
const paymentWorkflow = workflow('./payment.ts')

function processTree({ steps }) {
    return { processed: true }
}

// Steps array defines execution order
export const steps = [findTree, chopTree, paymentWorkflow, processTree]
