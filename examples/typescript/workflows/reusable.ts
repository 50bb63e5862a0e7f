// workflows/tree-processing.ts
import { z } from 'zod'
import { workflow } from 'rival'

// Import reusable steps from other files
import { findTree, chopTree } from './steps/tree-steps'
import { validateInput } from './steps/validation'

// Optional configuration
export const input = z.object({ treeType: z.string() })
export const name = 'treeProcessing'  // Override inferred name

// Define steps inline
function processTree({ steps }) {
    return { processed: true }
}

// Nested workflow (becomes a step)
const paymentWorkflow = workflow('./payment.ts')

function finalize({ steps }) {
    return { completed: true }
}

// Required: Steps array defines execution order
export const steps = [validateInput, findTree, chopTree, paymentWorkflow, processTree, finalize]
