// Prints with console, to Sluice and to the terminal. SLUICE_API_URL and SLUICE_API_KEY are in the environment.
import { SluiceClient } from '@sluice/client'
import { sendConsole } from './send-console.js'

const client = new SluiceClient({
  url: process.env.SLUICE_API_URL,
  apiKey: process.env.SLUICE_API_KEY,
  service: 'checkout',
  environment: 'production',
  source: 'server',
  // Not with console.error: it would be sent.
  onError: (error) => process.stderr.write(`${error.message}\n`),
})
sendConsole(client)

console.log('Order %s accepted', 4711, { total: 12.5 })
console.warn('Slow answer')
try {
  JSON.parse('{')
} catch (error) {
  console.error('Payment failed:', error)
}

// The client sends the rest when the program has nothing else to do. `process.exit()` would not wait for that: close the client before it.
