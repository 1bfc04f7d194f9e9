// Logs with pino, to Sluice and to the terminal. SLUICE_API_URL and SLUICE_API_KEY are in the environment.
import { pino } from 'pino'

const logger = pino({
  name: 'checkout',
  level: 'debug',
  customLevels: { success: 35 },
  transport: {
    targets: [
      {
        target: '@sluice/pino-transport',
        level: 'debug',
        options: { environment: 'production', source: 'server', customLevels: { success: 35 } },
      },
      { target: 'pino/file', level: 'info' },
    ],
    levels: { success: 35 },
  },
})

const request = logger.child({ requestId: 'r-1' })
request.debug('Connecting')
request.info({ order: { id: 4711, total: 12.5 } }, 'Order accepted')
request.success('Payment received')
try {
  JSON.parse('{')
} catch (error) {
  request.error(error, 'Answer of the bank is invalid')
}

// The entries are sent when the program ends.
