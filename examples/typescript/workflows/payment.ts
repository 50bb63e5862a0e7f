export function charge({ steps, log }) {
    log.info({ before: Object.keys(steps) }, 'charging')
    return { charged: true }
}

function receipt({ lastStep }) {
    return { receipt: lastStep.result.charged ? 'r-1' : null }
}

// Its name, where the file's would not do: examples/yaml/order has a workflow `payment`.
export const name = 'card-payment'
export const steps = [charge, receipt]
