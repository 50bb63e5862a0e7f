import { StepError } from 'rival'

let calls = 0
function askDatabase() {
    calls++
    if (calls < 3) throw Object.assign(new Error('no answer'), { code: 'TIMEOUT' })
    return { treeId: 'oak-123', calls }
}

function findTree({ input }) {
    try {
        return askDatabase()
    } catch (e) {
        if (e.code === 'TIMEOUT') {
            // Retry this error
            throw new StepError('Database timeout', {
                behavior: 'retry',
                maxAttempts: 3,
                backoff: 'exponential'
            })
        }
        // Stop workflow on this error
        throw new StepError('Invalid data', { behavior: 'stop' })
    }
}

export const steps = [findTree]
