import { Results } from 'rival'

export const results = Results<{
    findTree: { treeId: string; species: string }
    chopTree: { pieces: number }
}>()

const findTree = () => ({ treeId: 'oak-123', species: 'oak' })

function chopTree({ steps }: { steps: typeof results.Steps }) {
    steps.findTree.result.treeId   // ✓ fully typed
    return { pieces: 10 }
}

export const steps = [findTree, chopTree]
