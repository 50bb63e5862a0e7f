// steps/tree-steps.ts
export function findTree({ input }) {
    return { treeId: 'oak-123', location: input.location }
}

export function chopTree({ steps }) {
    return { chopped: true, pieces: 10 }
}
