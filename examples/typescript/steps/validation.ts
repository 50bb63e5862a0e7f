export function validateInput({ input }) {
    return { valid: typeof input.treeType === 'string' }
}
