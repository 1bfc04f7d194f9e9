import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { answer, FakeQueryApi, problem } from '../fake-query-api.ts'
import { jsonLines } from '../installation.ts'

const NOW = Date.UTC(2026, 10, 24, 12)
const iso = (ms: number): string => new Date(ms).toISOString()
const api = new FakeQueryApi()
beforeEach(async () => {
  api.asked = []
  api.responds = []
  await api.listen()
})
afterEach(() => api.close())

let ids = 0
const entry = (message: string, given: object = {}) => ({
  id: `01a208ac-c196-7000-b17f-${String(++ids).padStart(12, '0')}`,
  timestamp: iso(NOW - 1_000),
  received_at: iso(NOW - 1_000),
  level: 'info',
  message,
  ...given,
})
const page = (entries: readonly object[], given: object = {}) =>
  answer({ entries, next: null, complete_until: iso(NOW - 1_000), ...given })

/** Runs `sluice logs` in UTC. */
async function logs(args: readonly string[], given: Parameters<typeof api.context>[0] = {}) {
  const context = api.context({ nowMs: () => NOW, ...given })
  const code = await run(['logs', '--timezone', 'UTC', ...args], context)
  return { code, ...context.written }
}
const messages = (stdout: string) => jsonLines(stdout).map(({ message }) => message)

describe('logs', () => {
  test('sends the query with the key, and prints the entries oldest first', async () => {
    api.responds = [page([entry('new'), entry('old', { level: 'error', service: 'web' })])]
    const { code, stdout, stderr } = await logs(['level:error', 'service:web', 'OR', 'new'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe('2026-11-24T11:59:59.000Z ERROR   web old\n2026-11-24T11:59:59.000Z INFO    new\n')
    const [{ operation, parameters, headers } = { operation: '', parameters: {}, headers: {} }] = api.asked
    expect(operation).toBe('logs')
    expect(headers.authorization).toBe('Bearer slk_read')
    const query = 'level:error service:web OR new'
    expect(parameters).toEqual({ query, from: '2026-11-24T11:45:00Z', limit: '100' })
  })

  test.each([
    [['--from', '-1h'], '2026-11-24T11:00:00Z', undefined],
    [['--since', '1h', '--until', '30m'], '2026-11-24T11:00:00Z', '2026-11-24T11:30:00Z'],
    [['--until', '2026-11-20T10:00Z'], '2026-11-20T09:45:00Z', '2026-11-20T10:00:00Z'],
    [['--from', '10:30', '--timezone', 'Europe/Berlin'], '2026-11-24T09:30:00Z', undefined],
    [['--from', 'yesterday', '--until', '2026-11-24 01:00'], '2026-11-23T00:00:00Z', '2026-11-24T01:00:00Z'],
  ])('%j is a time range', async (args, from, until) => {
    api.responds = [page([])]
    await logs(args)
    expect(api.asked[0]?.parameters).toMatchObject({ from, ...(until !== undefined && { until }) })
  })

  test('reads pages until it has as many entries as the limit', async () => {
    const entries = Array.from({ length: 1_500 }, (_, index) => entry(`m${index}`))
    const { complete_until } = { complete_until: iso(NOW) }
    api.responds = [
      page(entries.slice(0, 1_000), { next: 'c1' }),
      page(entries.slice(1_000, 1_200), { next: 'c2', limited_by: 'time', complete_until }),
      page(entries.slice(1_200), { next: 'c3', complete_until }),
    ]
    const { stdout, stderr } = await logs(['--limit', '1500', '--json'])
    expect(messages(stdout)).toEqual(entries.map(({ message }) => message).toReversed())
    expect(api.asked.map(({ parameters: { limit, cursor } }) => [limit, cursor])).toEqual([
      ['1000', undefined],
      ['500', 'c1'],
      ['300', 'c2'],
    ])
    expect(stderr).toBe(
      'sluice: only the newest 1500 of the entries of the last 15 minutes; --limit shows more\n',
    )
  })

  test.each([
    [[], {}, false, 'no entry of the last 15 minutes matches; --from 1d shows those of a day'],
    [[], {}, true, 'the entries of the last 15 minutes; --from 1d shows those of a day'],
    [
      [],
      { complete_until: iso(NOW - 60_000) },
      false,
      'complete up to 2026-11-24T11:59:00.000Z: entries that',
    ],
    [[], { complete_until: null }, false, 'it is not known up to which time the entries are complete'],
    [
      [],
      { next: 'c', limited_by: 'time' },
      false,
      'the search ended at its limit of time, and more may match',
    ],
    [['--from', '1h'], {}, false, 'no entry from 2026-11-24T11:00:00.000Z until now matches'],
  ])('%j: what is not shown is told: %j', async (args, given, terminal, notice) => {
    api.responds = [page(terminal ? [entry('one')] : [], given)]
    expect((await logs(args, { terminal })).stderr).toContain(`sluice: ${notice}`)
  })

  test('a search that ends at its limits again and again is given up, and one in large pages is not', async () => {
    api.responds = [page([], { next: 'c', limited_by: 'rows' })]
    await logs([])
    expect(api.asked).toHaveLength(6)
    api.asked = []
    const large = Array.from({ length: 8 }, () => page([entry('large')], { next: 'c', limited_by: 'bytes' }))
    api.responds = [...large, page([])]
    expect((await logs([])).stderr).toBe('')
    expect(api.asked).toHaveLength(9)
  })

  test('shows where the errors of a query are', async () => {
    const errors = [
      { position: 5, message: 'Expected a value.' },
      { position: 13, message: 'Expected a ) for this (.' },
    ]
    api.responds = [problem(400, 'Expected a value.', { code: 'invalid_query', errors })]
    const { code, stderr } = await logs(['a\u001B[2J', 'OR', 'AND', '('])
    expect(code).toBe(2)
    expect(stderr.split('\n').slice(0, 5)).toEqual([
      'sluice: the query cannot be parsed:',
      String.raw`  a\e[2J OR AND (`,
      '        ^ Expected a value.',
      String.raw`  a\e[2J OR AND (`,
      '                ^ Expected a ) for this (.',
    ])
  })

  test.each([
    [
      401,
      'The API key is missing or invalid.',
      '401: The API key is missing or invalid.; check SLUICE_READ_KEY',
    ],
    [403, 'The API key lacks the scope read.', '403: The API key lacks the scope read.'],
    [422, 'The query would read too much.', '422: The query would read too much.'],
    [503, 'ClickHouse does not answer. Retry.', '503: ClickHouse does not answer.'],
  ])('a response with status %i is an error with its reason', async (status, detail, reason) => {
    api.responds = [problem(status, detail)]
    const { code, stderr } = await logs(['--follow'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`sluice: the query API at ${api.url} answers ${reason}`) as string,
    })
  })

  test('a response that is not JSON, as of a proxy, is an error with its status', async () => {
    api.responds = [answer('<html>', 502)]
    expect((await logs([])).stderr).toContain('answers 502: Bad Gateway')
  })

  test('an entry is shown with those around it, and marked', async () => {
    const one = entry('one', { stack: 'Error: x\n    at a' })
    const around = { before: [entry('before')], entry: one, after: [entry('after')] }
    api.responds = [answer({ ...around, complete_until: iso(NOW) })]
    const { stdout } = await logs(['--id', one.id, '--context', '1', '--stack'])
    expect(stdout.replaceAll(/2026\S* /g, '')).toBe(
      'INFO    before\n→ INFO    one\n    Error: x\n        at a\nINFO    after\n',
    )
    expect(api.asked[0]).toMatchObject({
      operation: 'context',
      parameters: { id: one.id, before: '1', after_count: '1' },
    })
  })

  test.each([
    [['--follow', '--until', '1h'], '--follow goes on until Ctrl-C'],
    [['--context', '3'], '--context needs --id'],
    [['--from', 'banana'], "option '--from <when>' argument 'banana' is invalid. It must be a duration"],
  ])('%j is a usage error with advice', async (args, advice) => {
    const { code, stderr } = await logs(args)
    expect(code).toBe(2)
    expect(stderr).toContain(advice)
  })

  test('long output is shown in the pager, except as JSON', async () => {
    const paged: string[] = []
    const given = { terminal: true, page: (text: string) => paged.push(text) > 0 }
    api.responds = [page([entry('one')])]
    expect((await logs([], given)).stdout).toBe('')
    expect(paged).toEqual([expect.stringMatching(/INFO.* one\n$/)])
    expect(messages((await logs(['--json'], given)).stdout)).toEqual(['one'])
  })

  test('Ctrl-C ends the request', async () => {
    api.responds = [() => undefined]
    const context = api.context()
    const running = run(['logs'], context)
    await vi.waitFor(() => expect(api.asked).toHaveLength(1))
    context.interrupt()
    expect(await running).toBe(130)
    await api.asked[0]?.closed
    expect(context.written).toEqual({ stdout: '', stderr: '' })
  })
})

const event = (type: string, id: string, data: object): string =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`
const start = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })
const histogram = (step_ms: number) =>
  answer({
    step_ms,
    buckets: [
      { from: '2026-11-24T11:58:00.000000Z', counts: { web: 1_200, '': 3 } },
      { from: '2026-11-24T11:59:00.000000Z', counts: { web: 5, shop: 40 }, other: 9 },
    ],
    total: 1_257,
    complete_until: iso(NOW - 1_000),
  })

describe('logs --follow', () => {
  test('prints what arrives, each entry once, and goes on after the last event', async () => {
    const [both, third, fourth] = [entry('both', { received_at: iso(NOW) }), entry('third'), entry('fourth')]
    const split = Promise.withResolvers<() => void>()
    api.responds = [
      page([both, entry('old', { received_at: iso(NOW - 2_000) })]),
      (response) => {
        start(response).write(event('entries', '1', { entries: [both, third] }))
        response.write(event('complete', '2', { complete_until: iso(NOW) }))
        // This event is incomplete, and its entries come again.
        response.write(event('entries', '3', { entries: [fourth] }).slice(0, -1), () => response.destroy())
      },
      (response) => {
        const text = event('entries', '3', { entries: [fourth, entry('Ä 東京')] })
        const bytes = Buffer.from(`${text}event: skipped\ndata: {"count":7}\n\n`)
        const middle = bytes.indexOf('東') + 1
        start(response).write(bytes.subarray(0, middle))
        split.resolve(() => response.write(bytes.subarray(middle)))
      },
    ]
    const context = api.context({ nowMs: () => NOW })
    const running = run(['logs', '--follow', '--json'], context)
    await vi.waitFor(() => expect(api.asked).toHaveLength(3))
    const sendRest = await split.promise
    sendRest()
    const expected = ['old', 'both', 'third', 'fourth', 'Ä 東京']
    await vi.waitFor(() => expect(messages(context.written.stdout)).toEqual(expected))
    await vi.waitFor(() =>
      expect(context.written.stderr).toContain('7 entries are left out: too many arrive'),
    )
    const [, first, second] = api.asked
    expect(first).toMatchObject({ operation: 'tail', parameters: { query: '', from: iso(NOW - 1_000) } })
    expect(first?.headers).not.toHaveProperty('last-event-id')
    expect(second?.headers['last-event-id']).toBe('2')
    context.interrupt()
    expect(await running).toBe(130)
    await second?.closed
  })

  test('retries while the query API is unavailable, and says so once', async () => {
    api.responds = [
      page([]),
      problem(503, 'Shutting down.'),
      problem(503, 'Shutting down.'),
      problem(429, 'Too many.'),
      (response) => start(response).write(event('entries', '1', { entries: [entry('back')] })),
    ]
    const context = api.context({ nowMs: () => NOW, random: () => 0 })
    const running = run(['logs', '--follow', '--json'], context)
    await vi.waitFor(() => expect(messages(context.written.stdout)).toEqual(['back']))
    const lines = context.written.stderr.split('\n').slice(1)
    expect(lines).toEqual([
      `sluice: the query API at ${api.url} answers 503: Shutting down.; retrying until it recovers`,
      `sluice: the query API at ${api.url} is available again`,
      '',
    ])
    context.interrupt()
    expect(await running).toBe(130)
  })

  test('says once that entries are late, and once that they are on time again', async () => {
    const lagsMs = [1_000, 9_000, 11_000, 60_000, undefined, 8_000, 4_000, 6_000, 1_000]
    const events = lagsMs.map((lagMs, n) =>
      event('complete', `${n}`, { complete_until: lagMs === undefined ? null : iso(NOW - lagMs) }),
    )
    const last = event('entries', 'last', { entries: [entry('last')] })
    api.responds = [page([entry('first')]), (response) => start(response).write([...events, last].join(''))]
    const context = api.context({ nowMs: () => NOW })
    const running = run(['logs', '--follow', '--json'], context)
    await vi.waitFor(() => expect(messages(context.written.stdout)).toEqual(['first', 'last']))
    expect(context.written.stderr.split('\n')).toEqual([
      'sluice: entries are over 10 s late',
      'sluice: entries are on time again',
      '',
    ])
    context.interrupt()
    expect(await running).toBe(130)
  })

  test('connects again when it has heard nothing for long', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    api.responds = [
      page([]),
      (response) => start(response).flushHeaders(),
      (response) => start(response).write(event('entries', '1', { entries: [entry('new')] })),
    ]
    const context = api.context({ nowMs: () => NOW })
    const running = run(['logs', '--follow', '--json'], context)
    // Connections are made in real time.
    let silentMs = 0
    while (context.written.stdout === '') {
      await setImmediate()
      if (api.asked.length !== 2) continue
      silentMs += 10
      await vi.advanceTimersByTimeAsync(10)
    }
    // Node itself waits for five minutes.
    expect(silentMs).toBeLessThan(100_000)
    expect(messages(context.written.stdout)).toEqual(['new'])
    context.interrupt()
    expect(await running).toBe(130)
    await api.asked[1]?.closed
  })

  test('a key that is revoked ends it', async () => {
    api.responds = [page([]), (response) => start(response).end(), problem(401, 'The key is revoked.')]
    const context = api.context({ nowMs: () => NOW })
    expect(await run(['logs', '--follow'], context)).toBe(1)
    expect(context.written.stderr).toContain('401: The key is revoked.')
  })

  test('--limit 0 prints only what arrives', async () => {
    api.responds = [(response) => start(response).write(event('entries', '1', { entries: [entry('new')] }))]
    const context = api.context()
    const running = run(['logs', '--follow', '--limit', '0', '--json'], context)
    await vi.waitFor(() => expect(messages(context.written.stdout)).toEqual(['new']))
    expect(api.asked.map(({ operation, parameters }) => [operation, parameters])).toEqual([
      ['tail', { query: '' }],
    ])
    context.interrupt()
    expect(await running).toBe(130)
  })
})

describe('logs count', () => {
  test('prints a table of the values by time, the most frequent first', async () => {
    api.responds = [histogram(60_000)]
    const { stdout, stderr } = await logs(['count', 'level:error', '--by', 'service', '--per', '1m'])
    expect(stderr).toBe('')
    expect(stdout.split('\n')).toEqual([
      'TIME                      web    shop  (others)  (none)',
      '2026-11-24T11:58:00.000Z  1,200  0     0         3',
      '2026-11-24T11:59:00.000Z  5      40    9         0',
      'total                     1,205  40    9         3',
      '',
    ])
    const range = { from: '2026-11-24T11:45:00Z', until: '2026-11-24T12:00:00Z' }
    expect(api.asked[0]).toMatchObject({
      operation: 'histogram',
      parameters: { query: 'level:error', by: 'service', buckets: '15', ...range },
    })
  })

  test('prints one object for each interval as JSON', async () => {
    api.responds = [histogram(60_000)]
    expect(jsonLines((await logs(['count', '--json'])).stdout)).toEqual([
      { from: '2026-11-24T11:58:00.000000Z', counts: { web: 1_200, '': 3 } },
      { from: '2026-11-24T11:59:00.000000Z', counts: { web: 5, shop: 40 }, other: 9 },
    ])
  })

  test('says if the intervals are others, and rejects too many', async () => {
    api.responds = [histogram(600_000)]
    expect((await logs(['count', '--per', '7m'])).stderr).toContain('counted per 600 s')
    expect(await logs(['count', '--per', '1s', '--from', '1h'])).toMatchObject({
      code: 1,
      stderr: 'sluice: --per makes 3,600 intervals, and 500 are allowed\n',
    })
  })
})
