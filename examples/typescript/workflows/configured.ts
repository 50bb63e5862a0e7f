// workflows/tree-processing.ts
import { z } from 'zod'

export const input = z.object({ treeType: z.string() })

function findTree({ input }) {
    return { treeId: 'oak-123' }
}

function chopTree({ steps }) {
    return { chopped: true }
}

function processTree({ steps }) {
    return { processed: true }
}

function notifyTeam({ error }) {
    console.log(error.message)
}

// Mix simple functions and config objects
export const steps = [
    findTree,  // Simple function
    { fn: chopTree, timeout: 60000, onTimeout: 'retry', maxAttempts: 3 },  // With timeout
    { fn: processTree, onError: notifyTeam }  // With error handler
]
