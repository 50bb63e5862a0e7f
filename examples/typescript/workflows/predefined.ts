// Needs the network, and waits: testing.ts runs it.
import { httpStep, delayStep } from 'rival'

function validateInput() {
    return { valid: true }
}

function processResponse({ steps }) {
    return steps.httpRequest.result.data
}

export const steps = [
    validateInput,
    httpStep({ url: 'https://api.example.com/data', method: 'POST' }),
    delayStep({ seconds: 5 }),  // Wait 5 seconds
    processResponse
]
