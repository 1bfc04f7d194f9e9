import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sendLimits } from '../../../src/send/entry-sender.ts'
import { FollowedFile } from '../../../src/send/follow/followed-file.ts'
import { FollowState, newSegment, type Segment } from '../../../src/send/follow/follow-state.ts'
import type { Answer } from '../../../src/send/follow/keyed-sender.ts'
import type { TailEvent } from '../../../src/send/follow/log-tail.ts'
import { Slots } from '../../../src/send/follow/slots.ts'

const identity = { device: '1', inode: '2', headBytes: 0, headHash: '' }

interface Posted {
  readonly messages: readonly string[]
  readonly entries: readonly unknown[]
  readonly key: string
  /** The state on the disk when the request was sent. */
  readonly segment: Segment
  readonly answer: (accepted?: number) => void
}

let folder = ''
let state: FollowState
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-followed-'))
  state = await FollowState.open(join(folder, 'state.json'))
})
afterEach(async () => {
  await state.close()
  await rm(folder, { recursive: true })
})

function persisted(): Segment[] {
  const { files } = JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8')) as {
    files: Record<string, Segment[]>
  }
  return files['app.log'] ?? []
}

/** Follows what `events` yields. The clock is moved by the test. */
class Following {
  readonly posted: Posted[] = []
  readonly notes: string[] = []
  nowMs = 0
  readonly #running: Promise<void>
  /** Whether requests are answered at once. */
  isAnswering = true

  constructor(events: (clock: Following) => AsyncGenerator<TailEvent>, slots = new Slots(4)) {
    const followed = new FollowedFile({
      path: 'app.log',
      segments: state.segmentsOf('app.log'),
      lines: {
        defaults: { level: 'info', service: undefined, fallbackService: undefined, environment: undefined },
        isRaw: false,
        timeZone: 'UTC',
        nowMs: () => 0,
      },
      monotonicMs: () => this.nowMs,
      onLine: () => undefined,
      onTooLong: (origin) => this.notes.push(`too long: ${origin}`),
      delivery: {
        state,
        slots,
        post: (entries, key) => this.#post(entries, key),
        onAnswer: (entries, { rejections }) => {
          for (const { index, error } of rejections)
            this.notes.push(`${entries[index]?.origin}: ${error.message}`)
        },
        onFailure: (error) => this.notes.push(String(error)),
      },
    })
    this.#running = followed.run({ events: () => events(this) })
  }

  async #post(entries: readonly string[], key: string): Promise<Answer> {
    const [segment] = persisted()
    if (segment === undefined) throw new Error('nothing is persisted')
    const { promise, resolve } = Promise.withResolvers<number>()
    this.posted.push({
      key,
      segment,
      entries: entries.map((entry): unknown => JSON.parse(entry)),
      messages: entries.map((entry) => (JSON.parse(entry) as { message: string }).message),
      answer: (accepted = entries.length) => resolve(accepted),
    })
    const accepted = this.isAnswering ? entries.length : await promise
    const rejection = { index: 1, error: { path: '', code: 'invalid', message: 'rejected' } }
    return { accepted, rejections: accepted < entries.length ? [rejection] : [] }
  }

  end(): Promise<void> {
    return this.#running
  }

  async until(requests: number): Promise<void> {
    while (this.posted.length < requests) await new Promise(setImmediate)
  }
}

const bytes = (text: string): TailEvent => ({ kind: 'bytes', bytes: Buffer.from(text) })
const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, index) => `[INFO] line ${from + index}\n`).join('')

/** A file that was not read before. */
function begin(modifiedMs = 0): TailEvent {
  const segment = newSegment(identity, 0, modifiedMs)
  state.segmentsOf('app.log').push(segment)
  return { kind: 'begin', segment }
}

/** The file of the state. */
function continued(): TailEvent {
  const [segment] = state.segmentsOf('app.log')
  if (segment === undefined) throw new Error('there is no state')
  return { kind: 'begin', segment }
}

describe('requests', () => {
  test('have a hundred entries, and their ends are persisted before they are sent', async () => {
    const following = new Following(async function* () {
      yield begin()
      yield bytes(lines(0, 250))
      yield { kind: 'end' }
    })
    await following.end()
    expect(following.posted.map(({ messages }) => messages.length)).toEqual([100, 100, 50])
    const text = lines(0, 250)
    for (const { messages, segment } of following.posted) {
      const last = messages.at(-1) ?? ''
      expect(segment.ends).toContain(text.indexOf(`${last}\n`) + last.length + 1)
    }
    // It stays until the next file is known.
    expect(persisted()).toMatchObject([{ isEnded: true, ends: [] }])
  })

  test('are sent when they have waited, and with them the last record', async () => {
    const following = new Following(async function* (clock) {
      yield begin()
      yield bytes('[INFO] a\n[INFO] b\n')
      yield { kind: 'pause' }
      clock.nowMs += 600
      yield { kind: 'pause' }
      expect(clock.posted).toEqual([])
      clock.nowMs += sendLimits.requestAgeMaxMs
      yield { kind: 'pause' }
      await clock.until(1)
    })
    await following.end()
    expect(following.posted.map(({ messages }) => messages)).toEqual([['a', 'b']])
  })

  test('wait for a free place, which all files share', async () => {
    const slots = new Slots(2)
    const following = new Following(async function* () {
      yield begin()
      yield bytes(lines(0, 1_000))
    }, slots)
    following.isAnswering = false
    await following.until(2)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(following.posted).toHaveLength(2)
    following.posted[0]?.answer()
    await following.until(3)
    following.isAnswering = true
    for (const { answer } of following.posted) answer()
    await following.end()
  })
})

describe('the offset', () => {
  test('advances over what is acknowledged, in the order of the file', async () => {
    const following = new Following(async function* () {
      yield begin()
      yield bytes(lines(0, 301))
    })
    following.isAnswering = false
    await following.until(3)
    const [first, second, third] = following.posted
    second?.answer()
    third?.answer()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(persisted()[0]).toMatchObject({ offset: 0 })
    first?.answer()
    await following.end()
    // The last line waits for its continuation.
    expect(persisted()[0]).toMatchObject({ offset: lines(0, 300).length, ends: [] })
  })

  test('does not pass a record that waits for its continuation', async () => {
    const following = new Following(async function* (clock) {
      yield begin()
      yield bytes('[INFO] a\n[INFO] b\n  more\n')
      clock.nowMs += 400
      yield { kind: 'pause' }
      yield bytes('  of b\n')
      clock.nowMs += 1_000
      yield { kind: 'pause' }
      await clock.until(1)
    })
    await following.end()
    expect(following.posted[0]?.messages).toEqual(['a', 'b\n  more\n  of b'])
    expect(persisted()[0]).toMatchObject({ offset: '[INFO] a\n[INFO] b\n  more\n  of b\n'.length })
  })

  test('does not pass a line without its end', async () => {
    const following = new Following(async function* (clock) {
      yield begin()
      yield bytes('[INFO] a\n[INFO] hal')
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      await clock.until(1)
    })
    await following.end()
    expect(following.posted[0]?.messages).toEqual(['a'])
    expect(persisted()[0]).toMatchObject({ offset: '[INFO] a\n'.length })
  })
})

describe('after a crash', () => {
  test('the same bytes become the same requests, although more lines follow now', async () => {
    const crashed = new Following(async function* (clock) {
      yield begin()
      yield bytes('[INFO] a\n[INFO] b\n')
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      yield bytes('[INFO] c\n[INFO] d\n')
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      clock.nowMs += 2_000
      yield { kind: 'pause' }
    })
    crashed.isAnswering = false
    await crashed.until(2)
    const restarted = new Following(async function* (clock) {
      yield continued()
      yield bytes('[INFO] a\n[INFO] b\n[INFO] c\n')
      await clock.until(1)
      yield bytes('[INFO] d\n  of d\n[INFO] e\n')
      yield { kind: 'end' }
    })
    await restarted.end()
    const [first, second, third] = restarted.posted
    expect([first?.key, second?.key]).toEqual(crashed.posted.map(({ key }) => key))
    expect(restarted.posted.map(({ messages }) => messages)).toEqual([
      ['a', 'b'],
      ['c', 'd'],
      ['  of d', 'e'],
    ])
    // The end of the second request stays known while the first one is sent: the process may crash again.
    expect(first?.segment.ends).toEqual([18, 36])
    expect(third?.key).not.toBe(second?.key)
    for (const { answer } of crashed.posted) answer()
    await crashed.end()
  })

  test('a line that came late belongs to its record again', async () => {
    const crashed = new Following(async function* (clock) {
      yield begin()
      yield bytes('#Fields: date time sc-status\n[INFO] a\n')
      clock.nowMs += 600
      yield { kind: 'pause' }
      // Before the request is sent.
      yield bytes('  of a\n')
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      await clock.until(2)
      clock.posted[0]?.answer()
      yield bytes('  still of a\n')
      clock.nowMs += 2_000
      yield { kind: 'pause' }
      clock.nowMs += 2_000
      yield { kind: 'pause' }
    })
    crashed.isAnswering = false
    await crashed.until(3)
    while (persisted()[0]?.offset === 0) await new Promise(setImmediate)
    const segment = JSON.parse(JSON.stringify(persisted()[0])) as Segment
    const restarted = new Following(async function* () {
      yield { kind: 'begin', segment }
      yield bytes('  of a\n  still of a\n2026-11-20 10:00:00 500\n')
      yield { kind: 'end' }
    })
    await restarted.end()
    expect(restarted.posted.slice(0, 2).map(({ key }) => key)).toEqual(
      crashed.posted.slice(1).map(({ key }) => key),
    )
    expect(restarted.posted[0]?.entries).toMatchObject([{ message: '  of a', metadata: { part: 2 } }])
    // The line that names the fields was read before the crash.
    expect(restarted.posted[2]?.entries).toMatchObject([
      { level: 'error', timestamp: '2026-11-20T10:00:00Z' },
    ])
    for (const { answer } of crashed.posted) answer()
    await crashed.end()
  })

  test.each([
    ['of two requests', 40, 1],
    ['of several requests', 40, 2],
    ['that does not fit into the request before', 3, 1],
  ])('a record %s becomes the same requests', async (_name, parts, answered) => {
    const text = `${lines(0, 98)}[INFO] ${'x'.repeat(65_536 * parts)}\n${lines(98, 250)}`
    const crashed = new Following(async function* () {
      yield begin()
      yield bytes(text)
      yield { kind: 'end' }
    })
    crashed.isAnswering = false
    await crashed.until(answered)
    for (const { answer } of crashed.posted.slice(0, answered)) answer()
    await crashed.until(answered + 1)
    while (persisted()[0]?.offset === 0) await new Promise(setImmediate)
    const segment = JSON.parse(JSON.stringify(persisted()[0])) as Segment
    const { offset } = segment
    for (const { answer } of crashed.posted) answer()
    crashed.isAnswering = true
    await crashed.end()
    const restarted = new Following(async function* () {
      yield { kind: 'begin', segment }
      yield bytes(text.slice(offset))
      yield { kind: 'end' }
    })
    await restarted.end()
    const keys = crashed.posted.map(({ key }) => key)
    expect(restarted.posted.map(({ key }) => key)).toEqual(keys.slice(1))
    expect(new Set(keys).size).toBe(keys.length)
  })

  test('the same lines at another place, or in another file, become another request', async () => {
    const text = lines(0, 100)
    const following = new Following(async function* () {
      yield begin()
      yield bytes(`${text}${text}`)
      yield { kind: 'end' }
      yield begin()
      yield bytes(text)
      yield { kind: 'end' }
    })
    await following.end()
    const keys = following.posted.map(({ key }) => key)
    expect(following.posted.map(({ messages }) => messages.length)).toEqual([100, 100, 100])
    expect(new Set(keys).size).toBe(3)
  })
})

test('rejected and too long lines are reported with their places, and passed', async () => {
  const following = new Following(async function* () {
    yield begin()
    yield bytes(`[INFO] a\n[INFO] b\n${'x'.repeat(6 * 1024 * 1024)}\n[INFO] c\n`)
    yield { kind: 'end' }
  })
  following.isAnswering = false
  await following.until(1)
  following.posted[0]?.answer(2)
  await following.end()
  expect(following.posted[0]?.messages).toEqual(['a', 'b', 'c'])
  expect(following.notes).toEqual(['too long: app.log, byte 18', 'app.log, byte 9: rejected'])
  expect(persisted()).toMatchObject([{ isEnded: true }])
})

test('a file that was sent is kept if lines were added to it since', async () => {
  state.segmentsOf('app.log').push({ ...newSegment(identity, 0, 0), isEnded: true })
  const following = new Following(async function* (clock) {
    yield continued()
    yield bytes(lines(0, 100))
    yield { kind: 'end' }
    await clock.until(1)
    yield begin(1)
  })
  following.isAnswering = false
  await following.until(1)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(persisted()).toHaveLength(2)
  following.posted[0]?.answer()
  await following.end()
  expect(persisted()).toHaveLength(1)
})

test('a file that was sent is forgotten when a file is known that was written later', async () => {
  const known: number[][] = []
  const following = new Following(async function* () {
    for (const modifiedMs of [1, 2, 2, 3]) {
      yield begin(modifiedMs)
      yield bytes(lines(0, 1))
      yield { kind: 'end' }
      // The answer arrives, and the state is saved.
      await new Promise((resolve) => setTimeout(resolve, 50))
      known.push(persisted().map((segment) => segment.modifiedMs))
    }
  })
  await following.end()
  // After a restart, both files of the same time must be known, or one would be sent again.
  expect(known).toEqual([[1], [2], [2, 2], [3]])
})
