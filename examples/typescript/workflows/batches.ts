// A loop inside a step: for what needs no record of each round.
const batches = [{ items: 3, isLast: false }, { items: 2, isLast: true }]
const fetchBatch = () => batches.shift()
const processBatch = (batch) => batch.items

function processAllBatches({ input }) {
    let done = false
    while (!done) {
        const batch = fetchBatch()
        processBatch(batch)
        done = batch.isLast
    }
    return { processed: true }
}

export const steps = [processAllBatches]
