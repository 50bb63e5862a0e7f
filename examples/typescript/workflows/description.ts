function findTree() {
    return { treeId: 'oak-123' }
}

// Set description for UI display
function chopTree({ steps, state }) {
    const tree = steps.findTree.result
    const pieces = 10

    // Set human-readable description
    state.description = `Chopped tree ${tree.treeId} into ${pieces} pieces`

    return { chopped: true, pieces }
}

export const steps = [findTree, chopTree]
