// A step is a function of one context.
const tree = { treeId: 'oak-123' }

function findTree(context) {
    // Access context properties
    console.log('finding tree')
    return tree
}

export const steps = [findTree]
