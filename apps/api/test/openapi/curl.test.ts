import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { logsPaths } from '../../src/http-contract.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'
import { Described, type Document } from './described.ts'

/**
 * Replaces curl, which may not be installed: prints its arguments, each followed by a NUL, and then its standard input. Replaces gzip
 * in the same way.
 */
const PROGRAMS = `curl() { printf '%s\\0' "$@"; cat; }
gzip() { "$NODE" -e "process.stdin.pipe(require('node:zlib').createGzip()).pipe(process.stdout)"; }
`

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

interface Call {
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: Buffer
}

/** Runs a command in a shell, and returns the request that curl would send. */
async function run(command: string): Promise<Call> {
  const child = promisify(execFile)('sh', ['-c', PROGRAMS + command], {
    encoding: 'buffer',
    env: {
      PATH: process.env['PATH'],
      NODE: process.execPath,
      SLUICE_API_URL: 'http://sluice',
      SLUICE_API_KEY: api.key,
    },
  })
  child.child.stdin?.end()
  const { stdout } = await child
  const end = stdout.lastIndexOf(
    '\0',
    stdout.lastIndexOf('@-') < 0 ? undefined : stdout.lastIndexOf('@-') + 2,
  )
  const [url = '', ...options] = stdout.subarray(0, end).toString().split('\0')
  const headers: Record<string, string> = {}
  let data = ''
  for (let i = 0; i < options.length; i += 2) {
    const [option = '', value = ''] = options.slice(i, i + 2)
    const [name = '', ...rest] = value.split(': ')
    if (option === '-H') headers[name.toLowerCase()] = rest.join(': ')
    else if (option === '-d' || option === '--data-binary') data = value
    else throw new Error(`unknown option: ${option}`)
  }
  return { url, headers, body: data === '@-' ? stdout.subarray(end + 1) : Buffer.from(data) }
}

describe.each(logsPaths)('the commands of %s', (path) => {
  it('are accepted without changes', async () => {
    const described = new Described((await api.app.inject('/openapi.json')).json<Document>())
    const commands = [...(described.post(path).description ?? '').matchAll(/```sh\n([^]+?)```/g)]
    expect(commands).toHaveLength(3)
    for (const [, command = ''] of commands) {
      const { url, headers, body } = await run(command)
      const answer = await api.app.inject({ method: 'POST', url, headers, payload: body })
      expect(answer.statusCode).toBe(202)
      expect(url).toBe(`http://sluice${path}`)
    }
    expect(api.queue.rows).toHaveLength(5)
  })
})
