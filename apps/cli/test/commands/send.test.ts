import { HttpServer } from '@sluice/harness/http-server'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import * as consumers from 'node:stream/consumers'
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { type FakeContext, fakeContext } from '../fake-context.ts'

type Entries = readonly Record<string, unknown>[]
type Responder = (response: ServerResponse, logs: Entries) => void

const json = (response: ServerResponse, status: number, body: unknown, headers = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
const accept: Responder = (response, logs) =>
  json(response, 202, { success: true, accepted: logs.length, rejected: 0 })
const problem =
  (status: number, detail: string, headers = {}): Responder =>
  (response) =>
    json(response, status, { type: 'about:blank', title: 'Problem', status, detail }, headers)

/** The responses to the next requests. Then all requests are accepted. */
let responders: Responder[]
let received: { headers: IncomingHttpHeaders; url: string | undefined; logs: Entries }[]
/** The messages of the entries that were accepted, in the order of the requests. */
let accepted: string[]
const messages = (): unknown[] => received.flatMap(({ logs }) => logs.map(({ message }) => message))

const api = new HttpServer((request, response) => void respondTo(request, response))

async function respondTo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers, url } = request
  const sent = await consumers.buffer(request)
  const body = headers['content-encoding'] === 'zstd' ? zstdDecompressSync(sent) : sent
  const { logs } = JSON.parse(body.toString()) as { logs: Entries }
  received.push({ headers, url, logs })
  const respond = responders.shift() ?? accept
  respond(response, logs)
  if (response.statusCode === 202) accepted.push(...logs.map(({ message }) => String(message)))
}

let folder = ''
beforeEach(async () => {
  responders = []
  received = []
  accepted = []
  await api.listen()
  folder = await mkdtemp(join(tmpdir(), 'sluice-send-'))
})
afterEach(async () => {
  await api.close()
  await rm(folder, { recursive: true })
})

async function file(name: string, contents: string | Buffer): Promise<string> {
  await writeFile(join(folder, name), contents)
  return join(folder, name)
}

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index}\n`).join('')

function contextFor(stdin: Readable = Readable.from([]), terminal = false): FakeContext {
  const environment = { SLUICE_API_URL: api.url, SLUICE_API_KEY: 'slk_test' }
  return fakeContext({ stdin, terminal, environment })
}

/** Runs `sluice send`. @returns its exit code and its output */
async function send(args: readonly string[], stdin?: Readable) {
  const context = contextFor(stdin)
  return { code: await run(['send', ...args], context), ...context.written }
}

describe('sends', () => {
  test('the lines of files in requests of 100, with the key, and the name of the file as the service', async () => {
    const { code, stdout, stderr } = await send([await file('web.log', `${lines(250)}\r\n  \n`)])
    expect(received.map(({ logs }) => logs.length).toSorted((a, b) => a - b)).toEqual([50, 100, 100])
    const headers = { authorization: 'Bearer slk_test', 'content-type': 'application/json' }
    expect(received[0]).toMatchObject({ url: '/v1/logs', headers })
    const last = { level: 'info', message: 'line 249', service: 'web' }
    expect(received.flatMap(({ logs }) => logs)).toContainEqual(last)
    expect(stdout).toMatch(
      /^250 of 250 entries sent, 250 accepted, 0 rejected; \d+\.\d s, [\d,]+ entries\/s\.\n$/,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  test('log lines with their times and levels, and stack traces as one entry; each line as a message with --raw', async () => {
    const text =
      '2026-11-20 10:00:00,123 ERROR [main] a.B: failed\n\tat a.B.c(B.java:1)\n2026-11-20 10:00:01 INFO done\n'
    const path = await file('shop.log', text)
    expect(await send([path, '--timezone', 'Asia/Tokyo'])).toMatchObject({ code: 0 })
    expect(received[0]?.logs).toEqual([
      {
        timestamp: '2026-11-20T10:00:00.123+09:00',
        level: 'error',
        message: 'failed',
        service: 'shop',
        stack: '\tat a.B.c(B.java:1)',
        metadata: { thread: 'main', logger: 'a.B' },
      },
      { timestamp: '2026-11-20T10:00:01+09:00', level: 'info', message: 'done', service: 'shop' },
    ])
    expect(await send([path, '--raw'])).toMatchObject({ code: 0 })
    expect(received[1]?.logs.map(({ message }) => `${String(message)}\n`).join('')).toBe(text)
  })

  test('stdin, with the values of the flags', async () => {
    const stdin = Readable.from([Buffer.from('text\n{"level":"warn","mess'), Buffer.from('age":"json"}')])
    const flags = ['--level', 'error', '--service', 'shop', '--environment', 'production']
    expect(await send(['-', ...flags], stdin)).toMatchObject({ code: 0 })
    const named = { service: 'shop', environment: 'production' }
    expect(received[0]?.logs).toEqual([
      { level: 'error', message: 'text', ...named },
      { level: 'warn', message: 'json', ...named },
    ])
  })

  test('the lines of an open stream before it ends', async () => {
    const stdin = new PassThrough()
    const running = send([], stdin)
    stdin.write('first\nsecond\nhalf a li')
    await vi.waitFor(() => expect(messages()).toEqual(['first', 'second']))
    stdin.end('ne\n')
    expect(await running).toMatchObject({ code: 0 })
    expect(messages()).toEqual(['first', 'second', 'half a line'])
  })

  test('the lines of compressed files and compressed stdin, with the name of the file as the service', async () => {
    const gzip = await file('web.log.gz', gzipSync('gzip\n'))
    const zstd = await file('shop.log.zst', zstdCompressSync('zstd\n'))
    const stdin = Readable.from([gzipSync('stdin\n')])
    expect(await send([gzip, zstd, '-'], stdin)).toMatchObject({ code: 0 })
    expect(received[0]?.logs).toEqual([
      { level: 'info', message: 'gzip', service: 'web' },
      { level: 'info', message: 'zstd', service: 'shop' },
      { level: 'info', message: 'stdin' },
    ])
  })

  test('nothing if one of the files cannot be read', async () => {
    const compressed = await file('b.log.xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 1, 2]))
    for (const [path, reason] of [
      [compressed, 'it is compressed (xz); convert it first: xz -dc FILE | …'],
      [join(folder, 'missing\u009B.log'), 'no such file or directory'],
      [folder, 'it is a directory'],
    ] as const) {
      const stderr = `sluice: cannot read ${path.replace('\u009B', String.raw`\u009b`)}: ${reason}\n`
      expect(await send([await file('a.log', 'text'), path])).toMatchObject({ code: 1, stderr })
    }
    expect(received).toEqual([])
  })
})

describe('an invalid line', () => {
  test('is counted as rejected, and the reason is shown with file and line', async () => {
    const errors = [{ index: 1, path: '/level', code: 'x', message: 'must be one of \u001B[31m…' }]
    responders = [(response) => json(response, 202, { success: true, accepted: 1, rejected: 1, errors })]
    const path = await file('a.ndjson', '{"level":"info","message":"m"}\n\n{"level":"banana"}\n')
    const { code, stdout, stderr } = await send([path])
    expect({ code, stderr }).toEqual({ code: 1, stderr: `${path}:3: /level must be one of \\e[31m…\n` })
    expect(stdout).toContain('2 of 2 entries sent, 1 accepted, 1 rejected')
  })

  test('is one of many: the first ones are shown, also above the counts on a terminal', async () => {
    const error = { path: '', code: 'no', message: 'no' }
    responders = [
      (response, logs) => {
        const errors = logs.map((_, index) => ({ index, ...error }))
        json(response, 202, { success: true, accepted: 0, rejected: logs.length, errors })
      },
    ]
    const context = contextFor(undefined, true)
    expect(await run(['send', await file('a.log', lines(50))], context)).toBe(1)
    const { stderr } = context.written
    expect(stderr.match(/a\.log:\d+: no\n/g)).toHaveLength(10)
    expect(stderr).toContain('Further rejections are not shown.\n0 accepted, 50 rejected')
    expect(stderr.endsWith('\r\u001B[2K')).toBe(true)
  })

  test('is not sent and is reported if it exceeds the size of a request', async () => {
    const path = await file('a.log', `before\n${'x'.repeat(6 * 1024 * 1024)}\nafter`)
    const stderr = expect.stringMatching(/a\.log:2: longer than [\d,]+ bytes, not sent\n$/) as string
    expect(await send([path])).toMatchObject({ code: 1, stderr })
    expect(messages()).toEqual(['before', 'after'])
  })

  test('is repaired and counted if it is not valid UTF-8', async () => {
    const { stdout } = await send([], Readable.from([Buffer.from([0x67, 0x72, 0xfc, 0x6e, 0x0a])]))
    expect(messages()).toEqual(['gr\uFFFDn'])
    expect(stdout).toContain('1 repaired because of invalid UTF-8')
  })
})

describe('a transient failure', () => {
  test('pauses all requests for the time in Retry-After, and is reported once', async () => {
    const limited = problem(429, 'Over the rate limit.', { 'retry-after': '1' })
    responders = [limited, limited, limited, limited]
    const { code, stdout, stderr } = await send([await file('a.log', lines(800))])
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'Waiting 1.0 s: Over the rate limit (429).\n' })
    const keys = received.map(({ headers }) => headers['idempotency-key'])
    expect([keys.length, new Set(keys).size]).toEqual([12, 8])
    expect(stdout).toContain('800 of 800 entries sent, 800 accepted, 0 rejected')
  })

  test('of the API or the connection is retried', async () => {
    responders = [problem(500, 'Failed.'), (response) => response.destroy()]
    const { code, stderr } = await send([await file('a.log', 'text')])
    expect(code).toBe(0)
    expect(messages()).toEqual(['text', 'text', 'text'])
    // Waits are random from zero on, and the shortest are not reported.
    expect(stderr).toMatch(
      /^(Waiting .* s: Failed \(500\)\.\n)?(Waiting .* s: the API closed the connection\.\n)?$/,
    )
  })

  test('is retried for a limited time', async () => {
    responders = [problem(503, 'Overloaded.', { 'retry-after': '3600' })]
    const { code, stdout, stderr } = await send([await file('a.log', lines(150))])
    expect(code).toBe(1)
    expect(stderr).toContain('Overloaded (503); gave up retrying\n')
    expect(stdout).toContain('not sent or without a response')
  })
})

describe('a permanent failure stops the sending', () => {
  test('with the reason from the API', async () => {
    responders = Array.from({ length: 4 }, () => problem(401, 'The API key is missing or invalid.'))
    const { code, stderr } = await send([await file('a.log', lines(2_000))])
    expect(code).toBe(1)
    expect(stderr).toBe(
      `sluice: the API at ${api.url} rejected the request: the API key is missing, malformed, unknown, expired or revoked (401); set SLUICE_API_KEY or pass --api-key\n`,
    )
    expect(received.length).toBeLessThanOrEqual(4)
  })

  test.each([
    [400, { detail: 'Not\u001B[2J an object.' }, String.raw`Not\e[2J an object (400)`],
    [200, { accepted: 1 }, 'the response is not from a Sluice API (200)'],
    [401, {}, 'the response is not from a Sluice API (401)'],
  ])('%i, and its entries are not counted as sent', async (status, body, reason) => {
    responders = [(response) => json(response, status, body)]
    const { stdout, stderr } = await send([await file('a.log', 'text')])
    expect(stderr).toBe(`sluice: the API at ${api.url} rejected the request: ${reason}\n`)
    expect(stdout).toMatch(
      /^Stopped at line 1: 0 of 1 entries sent, 0 accepted, 0 rejected, 1 not sent or without a response; /,
    )
  })

  test('even if stdin is still open', async () => {
    responders = [problem(404, 'There is no such project.')]
    const stdin = new PassThrough()
    stdin.write(lines(100))
    expect(await send([], stdin)).toMatchObject({ code: 1 })
    expect(stdin.destroyed).toBe(true)
  })

  test('when no API listens at the address', async () => {
    const url = 'http://127.0.0.1:2'
    expect(await send([await file('a.log', 'text'), '--api-url', url])).toMatchObject({
      code: 1,
      stderr: `sluice: the API at ${url} refused the connection; \`npm start\` starts a local API\n`,
    })
  })
})

test('after an interrupt, the lines of a stream that were read are sent, and it can be continued', async () => {
  const stdin = new PassThrough()
  const context = contextFor(stdin)
  const running = run(['send', '--skip-lines', '1'], context)
  stdin.write('skipped\nsent\n')
  await vi.waitFor(() => expect(messages()).toEqual(['sent']))
  context.interrupt()
  expect(await running).toBe(130)
  expect(context.written.stdout).toMatch(/^Interrupted at line 3: 1 of 1 entries sent, 1 accepted, /)
  expect(context.written.stderr).toMatch(/--skip-lines 2\n$/)
})

test('an interrupt ends a pause, and the waiting lines are counted', async () => {
  responders = [problem(429, 'Too fast.', { 'retry-after': '60' })]
  const context = contextFor()
  const running = run(['send', await file('a.log', 'text')], context)
  await vi.waitFor(() => expect(context.written.stderr).toContain('Waiting'))
  context.interrupt()
  expect(await running).toBe(130)
  expect(context.written.stdout).toMatch(/0 of 1 entries sent.*, 1 not sent or without a response/)
})

test('an interrupted run is continued exactly: no line is lost, and none is sent twice', async () => {
  // Two files with blank lines and a line that is too long.
  const texts = lines(3_000).split('\n')
  const files = [
    await file('a.log', `\n${texts.slice(0, 1_234).join('\n')}\n\n\r\n`),
    await file('b.log', `${'x'.repeat(6 * 1024 * 1024)}\n${texts.slice(1_234).join('\n')}`),
  ]
  const context = contextFor()
  responders = Array.from({ length: 10 }, () => accept)
  responders[7] = (response, logs) => {
    context.interrupt()
    accept(response, logs)
  }
  expect(await run(['send', ...files], context)).toBe(130)
  const [, line = ''] =
    /^Interrupted at line ([\d,]+): ([\d,]+) of \2 entries sent, \2 accepted, 0 rejected; /.exec(
      context.written.stdout,
    ) ?? []
  const skipped = String(Number(line.replace(',', '')) - 1)
  expect(context.written.stderr).toBe(
    `To send the rest, run the same command with the same input and --skip-lines ${skipped}\n`,
  )
  expect((await send([...files, '--skip-lines', skipped])).stderr).not.toContain('--skip-lines')
  expect(accepted.toSorted()).toEqual(texts.filter((text) => text !== '').toSorted())
})

test('a run that failed is continued exactly, if later requests were accepted', async () => {
  const late: Responder = (response, logs) => {
    response.statusCode = 202
    setTimeout(() => accept(response, logs), 100)
  }
  // Records of several lines.
  const expected = Array.from({ length: 1_500 }, (_, index) => `record ${index}\n  more ${index}`)
  const records = expected.map((text) => `2026-11-20 10:00:00 ERROR ${text}\n\n\tat a.B.c(B.java:1)\n`)
  const path = await file('a.log', records.join(''))
  responders = [accept, accept, late, problem(401, 'Revoked.'), late, late]
  const { code, stdout, stderr } = await send([path])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^Stopped at line [\d,]+: /)
  const [, skipped = 'none'] = /--skip-lines (\S+)\n$/.exec(stderr) ?? []
  expect(await send([path, '--skip-lines', skipped])).toMatchObject({ code: 0 })
  expect(accepted.toSorted()).toEqual(expected.toSorted())
})

test('no line is skipped if a file could not be read to its end', async () => {
  const cut = await file('cut.log.gz', gzipSync(lines(5_000)).subarray(0, -5))
  const { code, stdout, stderr } = await send([cut, await file('a.log', 'text')])
  expect(code).toBe(1)
  expect(stderr).toBe(
    `sluice: cannot read the rest of ${cut}: the compressed data is damaged or incomplete\n`,
  )
  expect(messages()).toContain('text')
  expect(stdout).toMatch(/^Stopped: /)
})
