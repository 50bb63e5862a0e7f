export function charge({ steps, log }) {
    log.info({ before: Object.keys(steps) }, 'charging')
    return { charged: true }
}

function receipt({ lastStep }) {
    return { receipt: lastStep.result.charged ? 'r-1' : null }
}

export const steps = [charge, receipt]
