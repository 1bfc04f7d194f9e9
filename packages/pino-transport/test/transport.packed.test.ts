import { execFile } from 'node:child_process'
import { cp, readdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FakeApi } from '../../client/test/support/fake-api.ts'
import { findProgram } from '../../client/test/support/find-program.ts'
import { checkInstalled, compile, installPacked } from '../../client/test/support/packed-project.ts'

const run = promisify(execFile)
const node = findProgram('node') ?? process.execPath
const examples = fileURLToPath(new URL('../../../examples', import.meta.url))
const nodeVersion = (await run(node, ['--version'])).stdout.trim()

let project = ''
beforeAll(async () => {
  const packed = await installPacked('client', 'pino-transport')
  project = packed.path
  for (const logger of ['pino', 'winston']) {
    const installed = join(examples, logger, 'node_modules', logger)
    await symlink(await realpath(installed), join(project, 'node_modules', logger))
  }
  return packed.remove
}, 120_000)

let api: FakeApi
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
})
afterEach(() => api.stop())

describe('the installed archive', () => {
  it.each([
    ['send.mjs', `import { pino } from 'pino'`],
    ['send.cjs', `const { pino } = require('pino')`],
  ])(`sends lines with Node ${nodeVersion}, from %s`, async (name, imports) => {
    const options = { url: api.url, apiKey: 'slk_test', spool: { directory: join(project, 'spool') } }
    await writeFile(
      join(project, name),
      `${imports}
       const logger = pino({
         name: 'packed',
         customLevels: { success: 35 },
         transport: { target: '@sluice/pino-transport', options: ${JSON.stringify(options)} },
       })
       for (let i = 0; i < 149; i += 1) logger.success({ i, big: 12345678901234567890n }, 'line')
       logger.error(new TypeError('no'))`,
    )
    const { stdout, stderr } = await run(node, [join(project, name)])
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' })
    const entries = api.received.flatMap(({ logs }) => logs)
    expect(entries).toHaveLength(150)
    // Batches are sent at the same time, so any of them can be received first.
    const first = expect.objectContaining({ i: 0, big: '12345678901234567890' }) as object
    expect(entries.map(({ metadata }) => metadata)).toContainEqual(first)
    expect(entries.filter(({ level, service }) => level === 'success' && service === 'packed')).toHaveLength(
      149,
    )
    const stack = expect.any(String) as string
    expect(entries.find(({ level }) => level === 'error')).toMatchObject({ message: 'no', stack })
    expect(await readdir(join(project, 'spool'))).toEqual([])
  })

  it.each([
    ['pino', 4],
    ['winston', 4],
    ['console', 3],
  ])(`runs examples/%s with Node ${nodeVersion}`, async (name, count) => {
    const cwd = join(project, name)
    await cp(join(examples, name), cwd, {
      recursive: true,
      filter: (path) => !path.endsWith('node_modules'),
    })
    const env = { ...process.env, SLUICE_API_URL: api.url, SLUICE_API_KEY: 'slk_test' }
    await run(node, ['main.js'], { cwd, env })
    const entries = api.received.flatMap(({ logs }) => logs)
    expect(entries.map(({ service }) => service)).toEqual(Array.from({ length: count }, () => 'checkout'))
  })

  it('has compiled files, declarations, license and documentation, and depends on a version of the client', async () => {
    const manifest = await checkInstalled(join(project, 'node_modules/@sluice/pino-transport'))
    expect(manifest).toMatchObject({ dependencies: { '@sluice/client': '^0.2.0' } })
  })
})

it('has complete declarations', async () => {
  const consumer = `
    import { pino } from 'pino'
    import type { SluiceTransportOptions } from '@sluice/pino-transport'
    const options: SluiceTransportOptions = {
      url: 'https://logs.example.com',
      apiKey: process.env.SLUICE_API_KEY,
      environment: 'production',
      metadata: { region: 'eu' },
      whenFull: 'wait',
      spool: { directory: '/var/spool/app', fsync: true },
      customLevels: { success: 35 },
    }
    pino({ transport: { target: '@sluice/pino-transport', options } })
    pino(pino.transport<SluiceTransportOptions>({ target: '@sluice/pino-transport', options: {} }))
    // @ts-expect-error -- a function does not cross to another thread
    export const hook: SluiceTransportOptions = { onError: () => undefined }
    // @ts-expect-error -- not a value of the option
    export const whenFull: SluiceTransportOptions = { whenFull: 'block' }
  `

  expect(await compile(project, consumer)).toBe('')
})
