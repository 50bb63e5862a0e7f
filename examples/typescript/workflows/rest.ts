const tree = { treeId: 'oak-123' }

// Or use spread syntax to get everything
function findTree(context) {
    const { lastStep, steps, ...rest } = context
    // Access any context properties
    rest.log.info(`attempt ${rest.run.attempt}`)
    return tree
}

export const steps = [findTree]
