const findTree = () => ({ treeId: 'oak-123' })
const chopTree = ({ lastStep }) => ({ chopped: lastStep.result.treeId })

export const steps = [
    { fn: findTree, timeout: 30000 },  // 30 seconds
    { fn: chopTree, timeout: 60000, onTimeout: 'retry', maxAttempts: 3, backoff: 'exponential' },
]
