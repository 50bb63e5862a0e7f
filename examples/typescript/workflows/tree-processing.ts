// workflows/tree-processing.ts
import { z } from 'zod'

// Optional: Input schema
export const input = z.object({
    treeType: z.string(),
    location: z.string().optional()
})

// Step functions
function findTree({ input }) {
    return { treeId: 'oak-123', location: input.location }
}

function chopTree({ steps, state }) {
    const tree = steps.findTree.result
    state.description = `Chopped tree ${tree.treeId}`
    return { chopped: true, pieces: 10 }
}

function processTree({ steps }) {
    return { processed: true, product: 'lumber' }
}

// Required: Steps array defines execution order
export const steps = [findTree, chopTree, processTree]
