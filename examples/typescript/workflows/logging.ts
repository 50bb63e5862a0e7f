import { z } from 'zod'

export const input = z.object({ treeType: z.string() })

const findTreeInDatabase = (treeType) => ({ id: `${treeType}-1` })

function findTree({ input, log }) {
    log.info({ treeType: input.treeType }, 'Searching for tree')

    const tree = findTreeInDatabase(input.treeType)

    log.debug({ treeId: tree.id }, 'Tree found')
    return tree
}

export const steps = [findTree]
