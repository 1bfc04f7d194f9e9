import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { type FakeContext, fakeContext } from '../fake-context.ts'

const WAIT_MS = 30_000

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly url: string | undefined
  readonly logs: readonly Record<string, unknown>[]
}

type Responder = (response: ServerResponse, received: Received) => void

const json = (response: ServerResponse, status: number, body: unknown, headers = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
const accept: Responder = (response, { logs }) =>
  json(response, 202, { success: true, accepted: logs.length, rejected: 0 })
const problem =
  (status: number, detail: string, headers = {}): Responder =>
  (response) =>
    json(response, status, { type: 'about:blank', title: 'Problem', status, detail }, headers)

/** An API that sends the prepared responses, one per request, and then accepts everything. */
class FakeApi {
  readonly received: Received[] = []
  /** The messages of the entries that were accepted, in the order of the requests. */
  readonly accepted: string[] = []
  responders: Responder[] = []
  readonly #server: Server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const sent = Buffer.concat(pieces)
      const body = request.headers['content-encoding'] === 'zstd' ? zstdDecompressSync(sent) : sent
      const { logs } = JSON.parse(body.toString()) as Pick<Received, 'logs'>
      const received = { headers: request.headers, url: request.url, logs }
      this.received.push(received)
      const respond = this.responders.shift() ?? accept
      respond(response, received)
      if (response.statusCode === 202) this.accepted.push(...logs.map(({ message }) => String(message)))
    })
  })

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get messages(): unknown[] {
    return this.received.flatMap(({ logs }) => logs.map(({ message }) => message))
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

let api: FakeApi
let folder = ''
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
  folder = await mkdtemp(join(tmpdir(), 'sluice-send-'))
})
afterEach(async () => {
  await api.stop()
  await rm(folder, { recursive: true })
})

async function file(name: string, contents: string | Buffer): Promise<string> {
  await writeFile(join(folder, name), contents)
  return join(folder, name)
}

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index}\n`).join('')

function contextFor(stdin: Readable = Readable.from([])): FakeContext {
  return fakeContext({ stdin, environment: { SLUICE_API_URL: api.url, SLUICE_API_KEY: 'slk_test' } })
}

const RATE = /; \d+\.\d s, [\d,]+ entries\/s\.\n$/

describe('sends', () => {
  test('the lines of files in requests of 100, with the key, and the name of the file as the service', async () => {
    const context = contextFor()
    const code = await run(['send', await file('web.log', `${lines(250)}\r\n  \n`)], context)
    expect(code).toBe(0)
    expect(api.received.map(({ logs }) => logs.length).toSorted((a, b) => a - b)).toEqual([50, 100, 100])
    expect(api.received[0]).toMatchObject({
      url: '/v1/logs',
      headers: { authorization: 'Bearer slk_test', 'content-type': 'application/json' },
    })
    expect(api.received.flatMap(({ logs }) => logs)).toContainEqual({
      level: 'info',
      message: 'line 249',
      service: 'web',
    })
    expect(context.written.stdout).toMatch(RATE)
    expect(context.written.stdout).toContain('250 of 250 entries sent, 250 accepted, 0 rejected')
    expect(context.written.stderr).toBe('')
  })

  test('log lines with their times and levels, and stack traces as one entry; each line as a message with --raw', async () => {
    const text =
      '2026-11-20 10:00:00,123 ERROR [main] a.B: failed\n\tat a.B.c(B.java:1)\n2026-11-20 10:00:01 INFO done\n'
    const flags = ['--timezone', 'Asia/Tokyo']
    expect(await run(['send', await file('shop.log', text), ...flags], contextFor())).toBe(0)
    expect(api.received[0]?.logs).toEqual([
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
    expect(await run(['send', await file('shop.log', text), '--raw'], contextFor())).toBe(0)
    expect(api.received[1]?.logs.map(({ message }) => `${String(message)}\n`).join('')).toBe(text)
  })

  test('compressed requests, except small ones', async () => {
    expect(await run(['send', await file('large.log', lines(100))], contextFor())).toBe(0)
    expect(await run(['send', await file('small.log', lines(3))], contextFor())).toBe(0)
    const sent = api.received.map(({ headers }) => headers)
    expect(sent.map((headers) => headers['content-encoding'])).toEqual(['zstd', undefined])
    expect(Number(sent[0]?.['content-length'])).toBeLessThan(1_000)
    expect(api.messages).toHaveLength(103)
  })

  test('stdin, with the values of the flags', async () => {
    const stdin = Readable.from([Buffer.from('text\n{"level":"warn","mess'), Buffer.from('age":"json"}')])
    const flags = ['--level', 'error', '--service', 'shop', '--environment', 'production']
    expect(await run(['send', '-', ...flags], contextFor(stdin))).toBe(0)
    const named = { service: 'shop', environment: 'production' }
    expect(api.received[0]?.logs).toEqual([
      { level: 'error', message: 'text', ...named },
      { level: 'warn', message: 'json', ...named },
    ])
  })

  test('the lines of an open stream within about a second', async () => {
    const stdin = new PassThrough()
    const running = run(['send'], contextFor(stdin))
    stdin.write('first\nsecond\nhalf a li')
    await vi.waitFor(() => expect(api.messages).toEqual(['first', 'second']), WAIT_MS)
    stdin.end('ne\n')
    expect(await running).toBe(0)
    expect(api.messages).toEqual(['first', 'second', 'half a line'])
  })

  test('the lines of compressed files and compressed stdin, with the name of the file as the service', async () => {
    const files = [
      await file('web.log.gz', gzipSync('gzip\n')),
      await file('shop.log.zst', zstdCompressSync('zstd\n')),
    ]
    expect(await run(['send', ...files, '-'], contextFor(Readable.from([gzipSync('stdin\n')])))).toBe(0)
    expect(api.received[0]?.logs).toEqual([
      { level: 'info', message: 'gzip', service: 'web' },
      { level: 'info', message: 'zstd', service: 'shop' },
      { level: 'info', message: 'stdin' },
    ])
  })

  test('nothing if one of the files cannot be read', async () => {
    const compressed = await file('b.log.xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 1, 2]))
    for (const [path, reason] of [
      [compressed, 'it is compressed (xz); convert it first: xz -dc FILE | …'],
      [join(folder, 'missing.log'), 'no such file'],
      [folder, 'it is a directory'],
    ] as const) {
      const context = contextFor()
      expect(await run(['send', await file('a.log', 'text'), path], context)).toBe(1)
      expect(context.written.stderr).toBe(`sluice: cannot read ${path}: ${reason}\n`)
    }
    expect(api.received).toEqual([])
  })
})

describe('an invalid line', () => {
  test('is counted as rejected, and the reason is shown with file and line', async () => {
    api.responders = [
      (response) =>
        json(response, 202, {
          success: true,
          accepted: 1,
          rejected: 1,
          errors: [{ index: 1, path: '/level', code: 'not_allowed', message: 'must be one of \u001B[31m…' }],
        }),
    ]
    const context = contextFor()
    const path = await file(
      'a.ndjson',
      '{"level":"info","message":"m"}\n\n{"level":"banana","message":"m"}\n',
    )
    expect(await run(['send', path], context)).toBe(1)
    expect(context.written.stderr).toBe(`${path}:3: /level must be one of \\e[31m…\n`)
    expect(context.written.stdout).toContain('2 of 2 entries sent, 1 accepted, 1 rejected')
  })

  test('is one of many: the first ones are shown, also above the counts on a terminal', async () => {
    api.responders = [
      (response, { logs }) =>
        json(response, 202, {
          success: true,
          accepted: 0,
          rejected: logs.length,
          errors: logs.map((_, index) => ({ index, path: '', code: 'no', message: 'no' })),
        }),
    ]
    const stderr = fakeContext({ terminal: true })
    const context = { ...contextFor(), stderr: stderr.stderr }
    expect(await run(['send', await file('a.log', lines(50))], context)).toBe(1)
    expect(stderr.written.stderr.match(/a\.log:\d+: no\n/g)).toHaveLength(10)
    expect(stderr.written.stderr).toContain('Further rejections are not shown.\n0 accepted, 50 rejected')
    expect(stderr.written.stderr.endsWith('\r\u001B[2K')).toBe(true)
  })

  test('is not sent and is reported if it exceeds the size of a request', async () => {
    const context = contextFor()
    const path = await file('a.log', `before\n${'x'.repeat(6 * 1024 * 1024)}\nafter`)
    expect(await run(['send', path], context)).toBe(1)
    expect(api.messages).toEqual(['before', 'after'])
    expect(context.written.stderr).toMatch(/a\.log:2: longer than [\d,]+ bytes, not sent\n$/)
  })

  test('is repaired and counted if it is not valid UTF-8', async () => {
    const context = contextFor(Readable.from([Buffer.from([0x67, 0x72, 0xfc, 0x6e, 0x0a])]))
    expect(await run(['send'], context)).toBe(0)
    expect(api.messages).toEqual(['gr\uFFFDn'])
    expect(context.written.stdout).toContain('1 repaired because of invalid UTF-8')
  })
})

describe('a transient failure is retried', () => {
  test('after the time in Retry-After, with the same idempotency keys; all other requests pause as well, and this is reported once', async () => {
    const limited = problem(429, 'Over the rate limit.', { 'retry-after': '1' })
    api.responders = [limited, limited, limited, limited]
    const context = contextFor()
    const startedAtMs = Date.now()
    expect(await run(['send', await file('a.log', lines(800))], context)).toBe(0)
    expect(Date.now() - startedAtMs).toBeGreaterThanOrEqual(1_000)
    const keys = api.received.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(12)
    expect(new Set(keys).size).toBe(8)
    expect(context.written.stderr).toBe('Waiting 1.0 s: Over the rate limit (429).\n')
    expect(context.written.stdout).toContain('800 of 800 entries sent, 800 accepted, 0 rejected')
  })

  test('if the API or the connection failed', async () => {
    api.responders = [problem(500, 'Failed.'), problem(503, 'Overloaded.'), (response) => response.destroy()]
    const context = contextFor()
    expect(await run(['send', await file('a.log', 'text')], context)).toBe(0)
    expect(api.messages).toEqual(['text', 'text', 'text', 'text'])
    // Waits are random from zero on, and the shortest are not reported.
    expect(context.written.stderr).toMatch(
      /^(Waiting .* s: Failed \(500\)\.\n)?(Waiting .* s: Overloaded \(503\)\.\n)?(Waiting .* s: the API closed the connection\.\n)?$/,
    )
  })

  test('for a limited time', async () => {
    api.responders = [problem(503, 'Overloaded.', { 'retry-after': '3600' })]
    const context = contextFor()
    expect(await run(['send', await file('a.log', lines(150))], context)).toBe(1)
    expect(context.written.stderr).toContain('Overloaded (503); gave up retrying\n')
    expect(context.written.stdout).toContain('not sent or without a response')
  })
})

describe('a permanent failure stops the sending', () => {
  test('with the reason from the API', async () => {
    api.responders = Array.from({ length: 4 }, () => problem(401, 'The API key is missing or invalid.'))
    const context = contextFor()
    expect(await run(['send', await file('a.log', lines(2_000))], context)).toBe(1)
    expect(context.written.stderr).toBe(
      `sluice: the API at ${api.url}/v1/logs rejected the request: the API key is missing, malformed, unknown, expired or revoked (401); set SLUICE_API_KEY or pass --api-key\n`,
    )
    expect(api.received.length).toBeLessThanOrEqual(4)
  })

  test.each([
    [400, { detail: 'The body is not an object.' }, 'The body is not an object (400)'],
    [422, { detail: 'The key was used.' }, 'The key was used (422)'],
    [301, {}, 'the response is not from a Sluice API (301)'],
    [200, { accepted: 1 }, 'the response is not from a Sluice API (200)'],
    [401, {}, 'the response is not from a Sluice API (401)'],
  ])('%i, and its entries are not counted as sent', async (status, body, reason) => {
    api.responders = [(response) => json(response, status, body)]
    const context = contextFor()
    expect(await run(['send', await file('a.log', 'text')], context)).toBe(1)
    expect(context.written.stderr).toBe(
      `sluice: the API at ${api.url}/v1/logs rejected the request: ${reason}\n`,
    )
    expect(context.written.stdout).toMatch(
      /^Stopped at line 1: 0 of 1 entries sent, 0 accepted, 0 rejected, 1 not sent or without a response; /,
    )
  })

  test('even if stdin is still open', async () => {
    api.responders = [problem(404, 'There is no such project.')]
    const stdin = new PassThrough()
    stdin.write(lines(100))
    expect(await run(['send'], contextFor(stdin))).toBe(1)
    expect(stdin.destroyed).toBe(true)
  })

  test('when no API listens at the address', async () => {
    const context = contextFor()
    const stopped = new FakeApi()
    await stopped.start()
    const { url } = stopped
    await stopped.stop()
    expect(await run(['send', await file('a.log', 'text'), '--api-url', url], context)).toBe(1)
    expect(context.written.stderr).toBe(
      `sluice: the API at ${url}/v1/logs refused the connection; \`npm start\` starts a local API\n`,
    )
  })
})

describe('after an interrupt', () => {
  test('the lines of a stream that were read are sent, and it can be continued', async () => {
    const stdin = new PassThrough()
    const context = contextFor(stdin)
    const running = run(['send', '--skip-lines', '1'], context)
    stdin.write('skipped\nsent\n')
    await vi.waitFor(() => expect(api.messages).toEqual(['sent']), WAIT_MS)
    context.interrupt()
    expect(await running).toBe(130)
    expect(context.written.stdout).toMatch(/^Interrupted at line 3: 1 of 1 entries sent, 1 accepted, /)
    expect(context.written.stderr).toMatch(/--skip-lines 2\n$/)
  })

  test('a pause ends, and the waiting lines are counted', async () => {
    api.responders = [problem(429, 'Too fast.', { 'retry-after': '60' })]
    const context = contextFor()
    const running = run(['send', await file('a.log', 'text')], context)
    await vi.waitFor(() => expect(context.written.stderr).toContain('Waiting'), WAIT_MS)
    context.interrupt()
    expect(await running).toBe(130)
    expect(context.written.stdout).toContain('0 of 1 entries sent')
    expect(context.written.stdout).toContain('1 not sent or without a response')
  })
})

describe('after an incomplete run', () => {
  const TOTAL = 3_000
  const all = Array.from({ length: TOTAL }, (_, index) => `line ${index}`)

  test('an interrupted run is continued exactly: no line is lost, and none is sent twice', async () => {
    // Two files with blank lines and a line that is too long.
    const texts = lines(TOTAL).split('\n')
    const files = [
      await file('a.log', `\n${texts.slice(0, 1_234).join('\n')}\n\n\r\n`),
      await file('b.log', `${'x'.repeat(6 * 1024 * 1024)}\n${texts.slice(1_234).join('\n')}`),
    ]
    const context = contextFor()
    api.responders = Array.from({ length: 10 }, () => accept)
    api.responders[7] = (response, received) => {
      context.interrupt()
      accept(response, received)
    }
    expect(await run(['send', ...files], context)).toBe(130)
    expect(context.written.stdout).toMatch(
      /^Interrupted at line [\d,]+: ([\d,]+) of \1 entries sent, \1 accepted, 0 rejected; /,
    )
    const [, line = ''] = /at line ([\d,]+):/.exec(context.written.stdout) ?? []
    const skipped = String(Number(line.replace(',', '')) - 1)
    expect(context.written.stderr).toBe(
      `To send the rest, run the same command with the same input and --skip-lines ${skipped}\n`,
    )
    const second = contextFor()
    await run(['send', ...files, '--skip-lines', skipped], second)
    expect(second.written.stderr).not.toContain('--skip-lines')
    expect(api.accepted.toSorted()).toEqual(all.toSorted())
  })

  test('a run that failed is continued exactly, if later requests were accepted', async () => {
    const late: Responder = (response, received) => {
      response.statusCode = 202
      setTimeout(() => accept(response, received), 100)
    }
    // Records of several lines.
    const count = 1_500
    const messages = Array.from({ length: count }, (_, index) => `record ${index}\n  more ${index}`)
    const records = messages.map(
      (message) => `2026-11-20 10:00:00 ERROR ${message}\n\n\tat a.B.c(B.java:1)\n`,
    )
    const path = await file('a.log', records.join(''))
    api.responders = [accept, accept, late, problem(401, 'Revoked.'), late, late]
    const context = contextFor()
    expect(await run(['send', path], context)).toBe(1)
    expect(context.written.stdout).toMatch(/^Stopped at line [\d,]+: /)
    const [, skipped = 'none'] = /--skip-lines (\S+)\n$/.exec(context.written.stderr) ?? []
    expect(await run(['send', path, '--skip-lines', skipped], contextFor())).toBe(0)
    expect(api.accepted.toSorted()).toEqual(messages.toSorted())
  })

  test('no line is skipped if a file could not be read to its end', async () => {
    const context = contextFor()
    const cut = await file('cut.log.gz', gzipSync(lines(5_000)).subarray(0, -5))
    expect(await run(['send', cut, await file('a.log', 'text')], context)).toBe(1)
    expect(context.written.stderr).toBe(
      `sluice: cannot read the rest of ${cut}: the compressed data is damaged or incomplete\n`,
    )
    expect(api.messages).toContain('text')
    expect(context.written.stdout).toMatch(/^Stopped: /)
  })
})
