const sendToSlack = (text) => console.log(text)
const sendToPaymentTeam = (text) => console.log(text)

function validateOrder() {
    return { valid: true }
}

function processPayment() {
    throw new Error('card declined')
}

// workflows/tree-processing.ts
export const onError = ({ error, failedStep, workflowState }) => {
    // error: the exception/error that occurred
    // failedStep: { result, state, stepName, status }
    // workflowState: { input, steps, status, runId, workflowName }
    sendToSlack(`Workflow ${workflowState.workflowName} failed at ${failedStep.stepName}`)
}

// Error handler function
function notifyPaymentTeam({ error, failedStep, workflowState }) {
    // Step-specific notification
    sendToPaymentTeam(`Payment step failed: ${error.message}`)
}

export const steps = [validateOrder, { fn: processPayment, onError: notifyPaymentTeam }]
