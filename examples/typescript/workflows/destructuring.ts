const tree = { treeId: 'oak-123' }

// Destructure specific properties
function findTree({ lastStep, steps }) {
    // Use lastStep and steps
    console.log('finding tree')
    return tree
}

export const steps = [findTree]
