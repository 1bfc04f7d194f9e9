// A process for the tests of runProcess: `process-main.ts MODE…`. It writes to standard error when it has started.
import { read } from 'node:fs'
import { createLogger } from '../../src/logger.ts'
import { readSettingsOrExit, runProcess } from '../../src/process.ts'
import { readSettings, SettingsError } from '../../src/settings.ts'

const modes = new Set(process.argv.slice(2))
const settings = {
  DEADLINE_MS: { type: 'integer', minimum: 1, default: 1_000, description: 'The deadline.' },
} as const
const config = readSettingsOrExit('test', () => readSettings(settings, process.env))
const logger = createLogger('test', 'info')

await runProcess({
  logger,
  deadlineMs: config.DEADLINE_MS,
  start: async (resources) => {
    if (modes.has('invalid')) throw new SettingsError('invalid settings: TEST is invalid')
    // Standard input is a pipe without data: the read blocks a thread of Node's pool.
    if (modes.has('blocked-thread')) read(0, Buffer.alloc(1), 0, 1, null, () => undefined)
    const running = setInterval(() => undefined, 60_000)
    if (modes.has('repeats')) for (let i = 0; i < 20; i++) logger.warn({ i }, 'not connected')
    if (modes.has('rejects')) void Promise.reject(new Error('no progress'))
    process.stderr.write('started\n')
    resources.defer(async () => {
      if (modes.has('writes-much')) for (let i = 0; i < 20_000; i++) logger.info({ i }, 'x'.repeat(100))
      if (modes.has('never-stops')) await new Promise(() => undefined)
      clearInterval(running)
    })
    return undefined
  },
})
