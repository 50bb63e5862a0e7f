import { createWorkflow, workflow } from 'rival'

const validateOrder = () => ({ valid: true })
const sendEmail = () => 'email'
const sendSms = () => 'sms'
const finalizeOrder = ({ steps }) => ({ receipt: steps.payment.result.receipt, told: steps.notify.result })

// Reference a file-based workflow
const paymentFlow = workflow('./payment.ts')

// Or use a builder-created workflow directly
const notificationFlow = createWorkflow('notify').step(sendEmail).step(sendSms)

// Include in steps array - treated as a single step
export const steps = [
    validateOrder,
    paymentFlow,        // Runs entire payment workflow
    notificationFlow,   // Runs entire notification workflow
    finalizeOrder
]
