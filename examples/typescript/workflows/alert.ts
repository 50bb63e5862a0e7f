import { z } from 'zod'

export const input = z.object({ priority: z.enum(['low', 'medium', 'high']).optional() })

function sendUrgentAlert({ input, state }) {
    if (input.priority !== 'high') {
        state.skipped = true
        state.description = 'Skipped: priority is not high'
        return null
    }

    // ... send alert
    return { sent: true }
}

export const steps = [sendUrgentAlert]
