import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildTestApi, type TestApi } from '../../../apps/api/test/support/test-api.ts'
import { findProgram } from './support/find-program.ts'
import { checkInstalled, compile, installPacked } from './support/packed-project.ts'

const run = promisify(execFile)

const node = (await findProgram('node')) ?? process.execPath
const nodeVersion = (await run(node, ['--version'])).stdout.trim()
const deno = await findProgram('deno')
const bun = await findProgram('bun')

let project = ''
beforeAll(async () => {
  const packed = await installPacked('client')
  project = packed.path
  return packed.remove
}, 120_000)

const installed = (path: string): string => join(project, 'node_modules/@sluice/client', path)

let api: TestApi
let url = ''
beforeEach(async () => {
  api = buildTestApi()
  url = await api.app.listen({ host: '127.0.0.1', port: 0 })
})
afterEach(() => api.close())

/** Sends 150 entries through a spool, one of them with everything that needs encoding. */
async function writeProgram(): Promise<string> {
  const path = join(project, 'send.mjs')
  await writeFile(
    path,
    `import { SluiceClient } from '@sluice/client'
     import { DiskSpool } from '@sluice/client/spool'
     const client = new SluiceClient({
       url: '${url}',
       apiKey: '${api.key}',
       service: 'packed',
       // More than ten at once, which Node must not take for a leak.
       requestsInFlightMax: 20,
       batchEntriesMax: 10,
       spool: new DiskSpool({ directory: '${join(project, 'spool')}' }),
       onRejected: ({ error }) => console.error(error),
     })
     for (let i = 0; i < 149; i += 1) client.child({ i }).info('entry', { text: 'é😀' })
     client.error(new TypeError('no', { cause: new Error('why') }))
     console.log(JSON.stringify(await client.close()))`,
  )
  return path
}

/** Checks what the API stored, after the program. @returns what the program printed */
async function sentBy(program: string, ...options: string[]): Promise<unknown> {
  const { stdout, stderr } = await run(program, [...options, await writeProgram()])
  expect(stderr).toBe('')
  expect(api.queue.rows).toHaveLength(150)
  const error = api.queue.rows.find(({ level }) => level === 'error')
  expect(error).toMatchObject({ message: 'no', service: 'packed' })
  expect(error?.['stack']).toContain('TypeError: no')
  expect(await readdir(join(project, 'spool'))).toEqual([])
  return JSON.parse(stdout)
}

const result = { accepted: 150, rejected: 0, dropped: 0, pending: 0 }

describe('the installed archive', () => {
  test(`sends entries with Node ${nodeVersion}`, async () => {
    expect(await sentBy(node)).toEqual(result)
  })

  test.skipIf(deno === undefined)('sends entries with Deno', async () => {
    expect(await sentBy(deno ?? '', 'run', '--allow-all', '--quiet')).toEqual(result)
  })

  test.skipIf(bun === undefined)('sends entries with Bun', async () => {
    expect(await sentBy(bun ?? '')).toEqual(result)
  })

  test('has compiled files, declarations, license and documentation, and nothing else', async () => {
    expect(await checkInstalled(installed(''))).not.toHaveProperty('dependencies')
  })

  test('imports modules of Node only in the spool', async () => {
    const files = await readdir(installed('dist'), { recursive: true })
    const importing: string[] = []
    for (const file of files.filter((name) => name.endsWith('.js'))) {
      const text = await readFile(installed(`dist/${file}`), 'utf8')
      if (/from ['"](?!\.)/.test(text)) importing.push(file)
    }
    expect(importing.length).toBeGreaterThan(0)
    expect(importing.filter((file) => !file.startsWith('spool/'))).toEqual([])
  })
})

test('the declarations are complete', async () => {
  const consumer = `
    import { type Entry, SluiceClient, type SluiceError } from '@sluice/client'
    import { DiskSpool } from '@sluice/client/spool'
    const entry: Entry = { level: 'info', message: 'm', metadata: { a: 1 } }
    interface Order { id: number }
    const order: Order = { id: 1 }
    await using client = new SluiceClient({
      url: 'https://logs.example.com',
      apiKey: process.env.SLUICE_API_KEY,
      environment: 'production',
      spool: new DiskSpool({ directory: '/var/spool/app' }),
      onError: (error: SluiceError) => void error.kind,
      onRejected: ({ entry, error }) => void [entry, error.code, error.path],
      onDropped: (entries, reason) => void [entries.length, reason === 'overflow'],
    })
    client.send(entry)
    client.info('paid', order)
    client.error(new Error('no'))
    // @ts-expect-error -- not a level
    client.send({ level: 'fatal', message: 'm' })
    // @ts-expect-error -- not an option
    new SluiceClient({ url: '', retries: 3 })
    const { accepted, problem } = await client.flush({ timeoutMs: 1_000 })
    const kind: 'configuration' | 'spool' | 'hook' | 'rejection' | undefined = problem?.kind
    export const result: [number, typeof kind] = [accepted, kind]
  `

  expect(await compile(project, consumer)).toBe('')
})

const read = (path: string): Promise<string> => readFile(new URL(path, import.meta.url), 'utf8')

test('the license is the license of the project', async () => {
  expect(await read('../LICENSE')).toBe(await read('../../../LICENSE'))
})
