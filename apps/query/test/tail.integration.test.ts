import { randomUUIDv7 } from 'node:crypto'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Entry, problemOf, type RowFields, type TestQuery, useQueryTests } from './support/test-query.ts'

const { readers, store, open } = await useQueryTests()
let api: TestQuery
let projectId: string
let key: string

beforeEach(async () => {
  await openApi()
})

/** The query API of the test, with a project. */
async function openApi(options: Parameters<typeof open>[0] = {}): Promise<void> {
  api = await open(options)
  ;({ projectId, key } = api.addProject())
  api.completeMs = Date.now()
}

interface Event {
  readonly id: string | undefined
  readonly event: string
  readonly data: { entries?: Entry[]; count?: number; complete_until?: string | null }
}

/** The events of a tail, until it is closed. */
async function* eventsOf(response: Response): AsyncGenerator<Event> {
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const events = `${text}${chunk}`.split('\n\n')
    text = events.pop() ?? ''
    for (const lines of events) {
      const fields = Object.fromEntries(lines.split('\n').map((line) => line.split(/: (.*)/s)))
      const data = JSON.parse(fields['data'] ?? '{}') as Event['data']
      yield { id: fields['id'], event: fields['event'] ?? '', data }
    }
  }
}

/** A viewer that reads until it is stopped. */
function watch(parameters: Record<string, string> = {}, lastEventId?: string) {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  onTestFinished(stop)
  const viewer = {
    messages: [] as string[],
    skipped: 0,
    lastId: lastEventId,
    complete: 0,
    unknown: 0,
    stop,
    ended: Promise.resolve(),
  }
  viewer.ended = (async () => {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    try {
      const response = await api.get(key, 'tail', parameters, { headers, signal: stopping.signal })
      for await (const { id, event, data } of eventsOf(response)) {
        viewer.messages.push(...(data.entries ?? []).map(({ message }) => message))
        viewer.skipped += data.count ?? 0
        if (event === 'complete') viewer.complete += 1
        if (data.complete_until === null) viewer.unknown += 1
        viewer.lastId = id ?? viewer.lastId
      }
    } catch {
      // It was stopped.
    }
  })()
  return viewer
}

/** A viewer that reads nothing until it is told to. */
async function ask() {
  const client = api.ask('/v1/query/tail', key)
  await expect.poll(() => api.tails.viewers).toBe(1)
  return client
}

/** How many entries are in the text of a tail. */
const entriesIn = (text: string): number => text.match(/"id":/g)?.length ?? 0

const numbered = (first: number, count: number, fields: Partial<RowFields> = {}): RowFields[] =>
  Array.from({ length: count }, (_, index) => ({
    projectId,
    id: randomUUIDv7(),
    message: `m${first + index}`,
    receivedMs: Date.now(),
    ...fields,
  }))

const names = (first: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `m${first + index}`)

describe('a tail', () => {
  it('has nothing before it is complete, and then every matching entry once', async () => {
    const all = watch()
    const errors = watch({ query: 'level:error' })
    await expect.poll(() => all.complete).toBeGreaterThan(0)
    const receivedMs = (api.completeMs ?? 0) + 50
    await store(numbered(0, 20, { receivedMs }))
    await store(numbered(20, 5, { receivedMs, level: 'error' }))
    const seen = all.complete
    await expect.poll(() => all.complete).toBeGreaterThan(seen)
    expect(all.messages).toEqual([])
    api.completeMs = receivedMs
    await expect.poll(() => all.messages.length).toBe(25)
    await expect.poll(() => errors.messages.length).toBe(5)
    expect(all.messages.toSorted()).toEqual(names(0, 25).toSorted())
    expect(errors.messages.toSorted()).toEqual(names(20, 5).toSorted())
  })

  it('goes on exactly through reconnects in the middle of a millisecond, with late inserts', async () => {
    let viewer = watch()
    await expect.poll(() => viewer.complete).toBeGreaterThan(0)
    const messages: string[] = []
    let timeMs = (api.completeMs ?? 0) + 1
    for (let round = 0; round < 6; round++) {
      const late = numbered(round * 30, 10, { receivedMs: timeMs + 1 })
      await store(numbered(round * 30 + 10, 20, { receivedMs: timeMs + 2 }))
      // Stored after entries that were received later.
      await store(late)
      timeMs += 2
      api.completeMs = timeMs
      // Every second one is stopped at once.
      const wanted = round % 2 === 0 ? (round + 1) * 30 : 0
      await expect.poll(() => messages.length + viewer.messages.length).toBeGreaterThanOrEqual(wanted)
      viewer.stop()
      await viewer.ended
      messages.push(...viewer.messages)
      viewer = watch(undefined, viewer.lastId)
    }
    await expect.poll(() => messages.length + viewer.messages.length).toBe(180)
    expect([...messages, ...viewer.messages].toSorted()).toEqual(names(0, 180).toSorted())
  })

  it('of a hundred viewers costs one query a poll', async () => {
    const viewers = Array.from({ length: 100 }, (_, index) =>
      watch({ query: index % 2 === 0 ? '' : 'level:error' }),
    )
    await expect.poll(() => viewers.filter(({ complete }) => complete > 0).length).toBe(100)
    const before = api.queries
    const receivedMs = (api.completeMs ?? 0) + 10
    await store(numbered(0, 10, { receivedMs, level: 'error' }))
    api.completeMs = receivedMs
    await expect.poll(() => viewers.filter(({ messages }) => messages.length === 10).length).toBe(100)
    // One that was under way, and the one with the entries.
    expect(api.queries - before).toBeLessThanOrEqual(2)
  })

  it('sends a part of more than 1,000 entries of a second, and counts the others', async () => {
    const viewer = watch()
    await expect.poll(() => viewer.complete).toBeGreaterThan(0)
    const receivedMs = (api.completeMs ?? 0) + 500
    await store(numbered(0, 2_500, { receivedMs }))
    api.completeMs = receivedMs
    await expect.poll(() => viewer.messages.length + viewer.skipped).toBe(2_500)
    expect(viewer.messages).toHaveLength(1_000)
  })

  it('has entries for queries that are too long for one', async () => {
    const long = Array.from({ length: 12 }, () => 'a.b.c:1..2').join(' OR ')
    const viewers = Array.from({ length: 5 }, (_, index) => watch({ query: `-(${long} OR v${index})` }))
    const receivedMs = (api.completeMs ?? 0) + 1
    await store(numbered(0, 3, { receivedMs }))
    await expect.poll(() => api.tails.viewers).toBe(5)
    api.completeMs = receivedMs
    await expect.poll(() => viewers.map(({ messages }) => messages.length)).toEqual([3, 3, 3, 3, 3])
  })

  it('resumes after an hour with all of it', async () => {
    const startMs = Date.now() - 3_600_000
    const rows = Array.from({ length: 36 }, (_, index) =>
      numbered(index * 50, 50, { receivedMs: startMs + index * 100_000 + 1 }),
    )
    await store(rows.flat())
    const viewer = watch({}, String(startMs))
    await expect.poll(() => viewer.messages.length, { timeout: 60_000 }).toBe(1_800)
    expect(viewer.messages.toSorted()).toEqual(names(0, 1_800).toSorted())
    expect(viewer.skipped).toBe(0)
  })

  it('of a hundred viewers that are behind together shares its queries', async () => {
    const viewers = Array.from({ length: 100 }, () => watch())
    await expect.poll(() => viewers.filter(({ complete }) => complete > 0).length).toBe(100)
    const before = api.queries
    const startMs = api.completeMs ?? 0
    const minutes = Array.from({ length: 120 }, (_, second) =>
      numbered(second, 1, { receivedMs: startMs + second * 1_000 + 1 }),
    )
    await store(minutes.flat())
    api.completeMs = startMs + 120_000
    await expect.poll(() => viewers.filter(({ messages }) => messages.length === 120).length).toBe(100)
    // Each longer than the one before, of at most two groups.
    expect(api.queries - before).toBeLessThan(20)
  })

  it('leaves out nothing for a viewer that reads slowly after everything was late', async () => {
    const slow = await ask()
    const prompt = watch()
    await expect.poll(() => prompt.complete).toBeGreaterThan(0)
    const startMs = api.completeMs ?? 0
    const message = 'x'.repeat(20_000)
    const rows = Array.from({ length: 20 }, (_, second) =>
      numbered(0, 50, { receivedMs: startMs + second * 1_000 + 1, message }),
    )
    await store(rows.flat())
    api.completeMs = startMs + 20_000
    // It does not wait for the other one.
    await expect.poll(() => prompt.messages.length).toBe(1_000)
    slow.read()
    await expect.poll(() => entriesIn(slow.text)).toBe(1_000)
    expect(slow.text).not.toContain('event: skipped')
    expect(prompt.skipped).toBe(0)
  })

  it.each(['live', 'behind'])(
    'that is %s goes on after the last entry of an answer that ends with an error',
    async (where) => {
      let failures = 0
      await openApi({
        client: {
          query: (options) => {
            if (failures >= 3) return readers.query(options)
            failures += 1
            // ClickHouse sends a megabyte at a time.
            const query = `SELECT *, throwIf(message LIKE 'm${failures}00 %') AS failed FROM (${options.query})`
            const settings = { ...options.clickhouse_settings, max_block_size: '10', max_threads: 1 }
            return readers.query({ ...options, query, clickhouse_settings: settings })
          },
        },
      })
      const viewer = watch()
      await expect.poll(() => api.tails.viewers).toBe(1)
      const startMs = (api.completeMs ?? 0) + (where === 'live' ? 1_000 : 60_000)
      const text = 'x'.repeat(30_000)
      const rows = Array.from({ length: 400 }, (_, n) => ({
        projectId,
        receivedMs: startMs + n,
        message: `m${n} ${text}`,
      }))
      await store(rows)
      failures = 0
      api.completeMs = startMs + 400
      // One that is live may read too slowly.
      await expect.poll(() => viewer.messages.length + viewer.skipped).toBe(400)
      expect(new Set(viewer.messages).size).toBe(viewer.messages.length)
      expect(failures).toBe(3)
      expect(viewer.unknown).toBeGreaterThan(0)
    },
  )

  it('tells that nothing is known to be complete, and continues when it is', async () => {
    api.completeMs = null
    const viewer = watch()
    await expect.poll(() => viewer.complete).toBeGreaterThan(0)
    const receivedMs = Date.now() + 5
    await store(numbered(0, 3, { receivedMs }))
    api.completeMs = receivedMs
    await expect.poll(() => viewer.messages.length).toBe(3)
  })

  it('ends when its key is revoked', async () => {
    const viewer = watch()
    await expect.poll(() => viewer.complete).toBeGreaterThan(0)
    api.registry.keysByHash.clear()
    await viewer.ended
    expect(api.tails.viewers).toBe(0)
  })

  it.each(['x', '1.2', '-1', '1.ffffffff', '1'])('does not begin at %s', async (id) => {
    const response = await api.get(key, 'tail', {}, { headers: { 'last-event-id': id } })
    expect(await problemOf(response)).toBe('400 invalid_parameter')
  })

  it('bounds what waits for a viewer that does not read, and counts what it misses', async () => {
    const client = await ask()
    const prompt = watch()
    await expect.poll(() => prompt.complete).toBeGreaterThan(0)
    const message = 'x'.repeat(20_000)
    for (let second = 0; second < 4; second++) {
      const receivedMs = (api.completeMs ?? 0) + 1_000
      await store(numbered(0, 500, { receivedMs, message }))
      api.completeMs = receivedMs
      await expect.poll(() => prompt.messages.length + prompt.skipped).toBe(500 * (second + 1))
    }
    client.read()
    const skipped = (): number =>
      [...client.text.matchAll(/"count":(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0)
    await expect.poll(() => entriesIn(client.text) + skipped()).toBe(2_000)
    expect(skipped()).toBeGreaterThan(0)
    client.leave()
    await expect.poll(() => api.tails.viewers).toBe(1)
  })
})
