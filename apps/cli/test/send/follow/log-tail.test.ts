import {
  appendFile,
  copyFile,
  mkdir,
  mkdtemp,
  rename,
  rm,
  rmdir,
  symlink,
  truncate,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Segment } from '../../../src/send/follow/follow-state.ts'
import { LogTail } from '../../../src/send/follow/log-tail.ts'

let folder = ''
let path = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-tail-'))
  path = join(folder, 'app.log')
})
afterEach(() => rm(folder, { recursive: true }))

/** Reads a log in the background, and acknowledges everything at once. */
class Reader {
  readonly segments: Segment[]
  readonly notes: string[] = []
  /** What was read, with `|` between files. */
  text = ''
  /** Until then, nothing more is read: the API does not answer. */
  hold: Promise<void> | undefined
  readonly #stop = new AbortController()
  /** Called between a file and the next one. */
  readonly #onEnd: (() => Promise<void>) | undefined
  readonly #others: ReadonlySet<string> | undefined
  readonly #running: Promise<void>

  constructor(
    segments: Segment[] = [],
    rotatedQuietMs = 60,
    onEnd?: () => Promise<void>,
    others?: ReadonlySet<string>,
  ) {
    this.segments = segments
    this.#others = others
    this.#onEnd = onEnd
    this.#running = this.#run(rotatedQuietMs)
  }

  async #run(rotatedQuietMs: number): Promise<void> {
    const { signal } = this.#stop
    const tail = new LogTail({
      path,
      ...(this.#others === undefined ? {} : { others: this.#others }),
      segments: this.segments,
      signal,
      monotonicMs: () => performance.now(),
      sleep: (ms) => sleep(ms, undefined, { signal }).catch(() => undefined),
      note: (text) => this.notes.push(text),
      limits: { pollMs: 5, rotatedQuietMs, pieceBytes: 7 },
    })
    let current: Segment | undefined
    for await (const event of tail.events()) {
      if (event.kind === 'begin') current = event.segment
      if (event.kind === 'bytes') {
        this.text += event.bytes.toString()
        if (current !== undefined) current.offset += event.bytes.length
        await this.hold
      }
      if (event.kind === 'end') {
        this.text += '|'
        if (current !== undefined) this.segments.splice(this.segments.indexOf(current), 1)
        await this.#onEnd?.()
      }
    }
  }

  /** Waits for a text. @returns what was read */
  async until(text: string): Promise<string> {
    const giveUpMs = Date.now() + 10_000
    while (this.text !== text && Date.now() < giveUpMs) await sleep(2)
    return this.text
  }

  /** @returns what the next reader has to know */
  async stop(): Promise<Segment[]> {
    this.#stop.abort()
    await this.#running
    return JSON.parse(JSON.stringify(this.segments)) as Segment[]
  }
}

/** More than the first bytes by which a copy is recognized. */
const LONG = `${'first line '.repeat(10)}\n`

/** Writes the lines 20 times, and reads the first of them and 7 bytes more, until the API answers. */
async function readInOutage(line: string): Promise<{ reader: Reader; readBytes: number; end: () => void }> {
  const outage = Promise.withResolvers<void>()
  await writeFile(path, line)
  const reader = new Reader()
  expect(await reader.until(line)).toBe(line)
  reader.hold = outage.promise
  await appendFile(path, line.repeat(19))
  const readBytes = line.length + 7
  const text = line.repeat(20).slice(0, readBytes)
  expect(await reader.until(text)).toBe(text)
  return { reader, readBytes, end: outage.resolve }
}

describe('a log that grows', () => {
  test('is read from its beginning, as it grows', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await appendFile(path, 'two\n')
    expect(await reader.until('one\ntwo\n')).toBe('one\ntwo\n')
    await reader.stop()
  })

  test('may not exist at first', async () => {
    const reader = new Reader()
    await sleep(30)
    expect(reader.notes).toEqual([`${path}: waiting for the file (ENOENT)`])
    await writeFile(path, 'one\n')
    expect(await reader.until('one\n')).toBe('one\n')
    await reader.stop()
  })

  test('may be a folder at first', async () => {
    await mkdir(path)
    const reader = new Reader()
    await sleep(30)
    expect(reader.notes).toEqual([`${path}: waiting for the file (it is not a file)`])
    await rmdir(path)
    await writeFile(path, 'one\n')
    expect(await reader.until('one\n')).toBe('one\n')
    await reader.stop()
  })

  test('continues where it was left', async () => {
    await writeFile(path, 'one\n')
    const first = new Reader()
    expect(await first.until('one\n')).toBe('one\n')
    const state = await first.stop()
    await appendFile(path, 'two\n')
    const second = new Reader(state)
    expect(await second.until('two\n')).toBe('two\n')
    await second.stop()
  })
})

describe('a log that is renamed', () => {
  test('is read to its end, also what is written after the renaming, before the new one', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader([], 1_000)
    expect(await reader.until('one\n')).toBe('one\n')
    await rename(path, `${path}.1`)
    await appendFile(`${path}.1`, 'two\n')
    await sleep(1_100)
    await writeFile(path, 'new\n')
    await sleep(100)
    await appendFile(`${path}.1`, 'three\n')
    expect(await reader.until('one\ntwo\nthree\n|new\n')).toBe('one\ntwo\nthree\n|new\n')
    expect(reader.segments).toHaveLength(1)
    await reader.stop()
  })

  test('while nothing reads it: its rest is found under the other name', async () => {
    await writeFile(path, LONG)
    const first = new Reader()
    expect(await first.until(LONG)).toBe(LONG)
    const state = await first.stop()
    await appendFile(path, 'rest\n')
    await rename(path, `${path}.1`)
    await writeFile(path, 'new\n')
    const second = new Reader(state)
    expect(await second.until('rest\n|new\n')).toBe('rest\n|new\n')
    await second.stop()
  })

  test('several times while nothing reads it: all files in between are read', async () => {
    await writeFile(path, 'one\n')
    const first = new Reader()
    expect(await first.until('one\n')).toBe('one\n')
    const state = await first.stop()
    await writeFile(`${path}.3`, 'sent long ago\n')
    await utimes(`${path}.3`, 1_000, 1_000)
    await appendFile(path, 'rest\n')
    await rename(path, `${path}.2`)
    await utimes(`${path}.2`, 2_000, 2_000)
    await writeFile(`${path}.1`, 'between\n')
    await utimes(`${path}.1`, 3_000, 3_000)
    await writeFile(`${path}.1.gz`, 'compressed')
    await writeFile(join(folder, 'app.login'), 'other')
    await writeFile(path, 'new\n')
    const second = new Reader(state)
    expect(await second.until('rest\n|between\n|new\n')).toBe('rest\n|between\n|new\n')
    await second.stop()
  })

  test('is not read again after another rotation, although it was written later than the file after it', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await rename(path, `${path}.1`)
    await writeFile(path, 'new\n')
    expect(await reader.until('one\n|new\n')).toBe('one\n|new\n')
    const laterSeconds = Date.now() / 1_000 + 60
    await utimes(`${path}.1`, laterSeconds, laterSeconds)
    await rename(`${path}.1`, `${path}.2`)
    await rename(path, `${path}.1`)
    await writeFile(path, 'newest\n')
    expect(await reader.until('one\n|new\n|newest\n')).toBe('one\n|new\n|newest\n')
    await reader.stop()
  })

  test('and deleted while nothing reads it: this is reported', async () => {
    await writeFile(path, LONG)
    const first = new Reader()
    expect(await first.until(LONG)).toBe(LONG)
    const state = await first.stop()
    await unlink(path)
    await writeFile(path, 'new\n')
    const second = new Reader(state)
    expect(await second.until('new\n')).toBe('new\n')
    expect(second.notes).toEqual([
      `${path}: the file that was read before is gone; its last lines may not have been sent`,
    ])
    await second.stop()
  })

  test('while nothing reads it, after it was read to its end: the next files are read', async () => {
    await writeFile(path, LONG)
    const first = new Reader()
    expect(await first.until(LONG)).toBe(LONG)
    const [segment, ...others] = await first.stop()
    expect(others).toEqual([])
    if (segment === undefined) throw new Error('there is no segment')
    await writeFile(`${path}.3`, 'sent long ago\n')
    await utimes(`${path}.3`, 1_000, 1_000)
    await unlink(path)
    await writeFile(`${path}.1`, 'between\n')
    await writeFile(path, 'new\n')
    const second = new Reader([{ ...segment, isEnded: true }])
    expect(await second.until('between\n|new\n')).toBe('between\n|new\n')
    // All of the file that is gone was sent.
    expect(second.notes).toEqual([])
    await second.stop()
  })

  test('where a link points to, while nothing reads it: its rest is found there', async () => {
    const place = join(folder, 'pods')
    await mkdir(place)
    const target = join(place, '0.log')
    await writeFile(target, LONG)
    await symlink(target, path)
    const first = new Reader()
    expect(await first.until(LONG)).toBe(LONG)
    const state = await first.stop()
    await appendFile(target, 'rest\n')
    await rename(target, `${target}.20261120-101010`)
    await utimes(`${target}.20261120-101010`, 1_000, 1_000)
    // The program has not opened its new log yet.
    const second = new Reader(state)
    expect(await second.until('rest\n|')).toBe('rest\n|')
    await writeFile(target, 'new\n')
    expect(await second.until('rest\n|new\n')).toBe('rest\n|new\n')
    await second.stop()
  })

  test.each(['shop-1-20261118.log', 'shop.host.log.INFO.20261118-100000.17'])(
    'where a link points to %s and to its next files, while nothing reads it: all of them are read',
    async (first) => {
      const place = join(folder, 'dated')
      await mkdir(place)
      const names = [18, 19, 20, 21].map((day) => first.replace('18', String(day)))
      const [second = '', third = '', last = ''] = names.slice(1).map((name) => join(place, name))
      await writeFile(join(place, first), LONG)
      await symlink(join(place, first), path)
      const reader = new Reader()
      expect(await reader.until(LONG)).toBe(LONG)
      const state = await reader.stop()
      await appendFile(join(place, first), 'rest\n')
      await sleep(20)
      await writeFile(second, 'second\n')
      // Another log, whose name has another number before the date.
      await writeFile(join(place, 'shop-2-20261119.log'), 'other\n')
      await sleep(20)
      await writeFile(third, 'third\n')
      await writeFile(last, 'last\n')
      await unlink(path)
      await symlink(last, path)
      const restarted = new Reader(state)
      const expected = 'rest\n|second\n|third\n|last\n'
      expect(await restarted.until(expected)).toBe(expected)
      expect(restarted.notes).toEqual([])
      await restarted.stop()
    },
  )

  test('while nothing reads it, and the next file begins with the same lines: it is not taken for a copy', async () => {
    const banner = LONG.repeat(20)
    await writeFile(path, banner)
    const first = new Reader()
    expect(await first.until(banner)).toBe(banner)
    const state = await first.stop()
    await appendFile(path, 'rest\n')
    await rename(path, `${path}.2`)
    await utimes(`${path}.2`, 2_000, 2_000)
    await writeFile(`${path}.1`, `${banner}between, and longer\n`)
    await writeFile(path, 'new\n')
    const second = new Reader(state)
    const all = `rest\n|${banner}between, and longer\n|new\n`
    expect(await second.until(all)).toBe(all)
    await second.stop()
  })

  test('and written on, because the program has not opened its new log: it is read until that has lines', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await rename(path, `${path}.1`)
    await writeFile(path, '')
    await sleep(200)
    await appendFile(`${path}.1`, 'two\n')
    expect(await reader.until('one\ntwo\n')).toBe('one\ntwo\n')
    await appendFile(path, 'new\n')
    expect(await reader.until('one\ntwo\n|new\n')).toBe('one\ntwo\n|new\n')
    await reader.stop()
  })

  test('and deleted is not kept open, although the new log is empty', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await unlink(path)
    await writeFile(path, '')
    expect(await reader.until('one\n|')).toBe('one\n|')
    await reader.stop()
  })

  test('does not take another log for a rotated file', async () => {
    const other = join(folder, 'app-2.log')
    await writeFile(path, 'one\n')
    const reader = new Reader([], 60, undefined, new Set([path, other]))
    expect(await reader.until('one\n')).toBe('one\n')
    await writeFile(other, 'other\n')
    await rename(path, `${path}.1`)
    await writeFile(path, 'new\n')
    expect(await reader.until('one\n|new\n')).toBe('one\n|new\n')
    await reader.stop()
  })

  test('while the files in between are read: none is left out', async () => {
    const rotate = async (number: number): Promise<void> => {
      for (let last = number; last > 1; last -= 1) await rename(`${path}.${last - 1}`, `${path}.${last}`)
      await rename(path, `${path}.1`)
      await writeFile(path, `${number + 1}\n`)
    }
    let rotations = 0
    await writeFile(path, '1\n')
    const reader = new Reader([], 20, async () => {
      for (let i = 0; i < 2 && rotations < 6; i += 1) await rotate((rotations += 1))
    })
    expect(await reader.until('1\n')).toBe('1\n')
    await rotate((rotations += 1))
    // Files that were written at the same time are read in any order.
    const isAtEnd = (): boolean => reader.text.split('|').includes('7\n')
    const giveUpMs = Date.now() + 10_000
    while (!isAtEnd() && Date.now() < giveUpMs) await sleep(5)
    await sleep(50)
    await reader.stop()
    expect(reader.text.split('|').toSorted()).toEqual(['1\n', '2\n', '3\n', '4\n', '5\n', '6\n', '7\n'])
  })

  test('again and again, faster than it is read: each line is read once', async () => {
    const ROTATIONS = 60
    await writeFile(path, '1 of 0\n')
    const reader = new Reader([], 20)
    expect(await reader.until('1 of 0\n')).toBe('1 of 0\n')
    let line = 1
    for (let rotations = 0; rotations < ROTATIONS; rotations += 1) {
      for (let i = 0; i < 5; i += 1) await appendFile(path, `${(line += 1)} of ${rotations}\n`)
      for (let number = rotations; number > 0; number -= 1)
        await rename(`${path}.${number}`, `${path}.${number + 1}`)
      await rename(path, `${path}.1`)
      if (rotations % 7 === 0) await sleep(30)
    }
    await appendFile(path, 'end\n')
    const giveUpMs = Date.now() + 10_000
    while (!reader.text.endsWith('end\n') && Date.now() < giveUpMs) await sleep(10)
    await reader.stop()
    const numbers = [...reader.text.matchAll(/(\d+) of/g)].map(([, number]) => Number(number))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: line }, (_, i) => i + 1))
  })
})

describe('a log that is truncated', () => {
  test('is read from its beginning again', async () => {
    await writeFile(path, 'one\ntwo\n')
    const reader = new Reader()
    expect(await reader.until('one\ntwo\n')).toBe('one\ntwo\n')
    await truncate(path)
    await appendFile(path, 'new\n')
    expect(await reader.until('one\ntwo\n|new\n')).toBe('one\ntwo\n|new\n')
    await reader.stop()
  })

  test('and is longer than before at once, is still recognized', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await writeFile(path, 'other and longer\n')
    expect(await reader.until('one\n|other and longer\n')).toBe('one\n|other and longer\n')
    await reader.stop()
  })

  test('and is as long as before at once, is still recognized', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await sleep(20)
    await writeFile(path, 'two\n')
    expect(await reader.until('one\n|two\n')).toBe('one\n|two\n')
    await reader.stop()
  })

  test('and is as long as before at once, is recognized at any moment of a poll', async () => {
    let expected = 'line 0\n'
    await writeFile(path, expected)
    const reader = new Reader()
    for (let i = 1; i < 100; i += 1) {
      expect(await reader.until(expected)).toBe(expected)
      await sleep(20)
      const text = `line ${i % 10}\n`
      await writeFile(path, text, { flag: 'r+' })
      expected += `|${text}`
    }
    expect(await reader.until(expected)).toBe(expected)
    await reader.stop()
  })

  test('after it was copied, while nothing reads it: the rest is read from the copy', async () => {
    await writeFile(path, LONG)
    const first = new Reader()
    expect(await first.until(LONG)).toBe(LONG)
    const state = await first.stop()
    await appendFile(path, 'rest\n')
    await copyFile(path, `${path}.1`)
    await truncate(path)
    await appendFile(path, 'new\n')
    const second = new Reader(state)
    expect(await second.until('rest\n|new\n')).toBe('rest\n|new\n')
    await second.stop()
  })

  test('after it was copied, while nothing reads it, and nothing of it was read before: the copy is read', async () => {
    await writeFile(path, '')
    const first = new Reader()
    while (first.segments.length === 0) await sleep(2)
    const state = await first.stop()
    expect(state).toMatchObject([{ offset: 0, identity: { headBytes: 0 } }])
    await appendFile(path, LONG)
    await copyFile(path, `${path}.1`)
    await truncate(path)
    await appendFile(path, 'new\n')
    const second = new Reader(state)
    expect(await second.until(`${LONG}|new\n`)).toBe(`${LONG}|new\n`)
    await second.stop()
  })

  test('after it was copied, before the last lines were read: they are read from the copy', async () => {
    await writeFile(path, LONG)
    const reader = new Reader()
    expect(await reader.until(LONG)).toBe(LONG)
    await copyFile(path, `${path}.1`)
    await appendFile(`${path}.1`, 'rest\n')
    await truncate(path)
    await appendFile(path, 'new\n')
    expect(await reader.until(`${LONG}rest\n|new\n`)).toBe(`${LONG}rest\n|new\n`)
    await reader.stop()
  })

  test.each([
    ['and is longer at once', LONG.toUpperCase().repeat(30)],
    ['and is shorter', 'new\n'],
  ])(
    'after it was copied, while the API does not answer, %s: the rest is read from the copy',
    async (_name, text) => {
      const { reader, end } = await readInOutage(LONG)
      await copyFile(path, `${path}.1`)
      await writeFile(path, text)
      end()
      const expected = `${LONG.repeat(20)}|${text}`
      expect(await reader.until(expected)).toBe(expected)
      expect(reader.notes).toEqual([])
      await reader.stop()
    },
  )

  test('twice, after it was copied, while the API does not answer: both copies are read', async () => {
    const [second, third] = [`b ${LONG}`.repeat(20), `c ${LONG}`.repeat(30)]
    const { reader, end } = await readInOutage(LONG)
    await copyFile(path, `${path}.2`)
    await writeFile(path, second)
    await copyFile(path, `${path}.1`)
    await writeFile(path, third)
    end()
    const expected = `${LONG.repeat(20)}|${second}|${third}`
    expect(await reader.until(expected)).toBe(expected)
    await reader.stop()
  })

  test('while its copy is read, and the copy is overwritten: the rest is read from the copy of the copy', async () => {
    const [second, third] = [`b ${LONG}`.repeat(20), `c ${LONG}`.repeat(30)]
    const { reader, readBytes, end } = await readInOutage(LONG)
    await copyFile(path, `${path}.1`)
    await writeFile(path, second)
    const next = Promise.withResolvers<void>()
    reader.hold = next.promise
    end()
    const text = LONG.repeat(20).slice(0, readBytes + 7)
    expect(await reader.until(text)).toBe(text)
    await copyFile(`${path}.1`, `${path}.2`)
    await copyFile(path, `${path}.1`)
    await writeFile(path, third)
    next.resolve()
    const expected = `${LONG.repeat(20)}|${second}|${third}`
    expect(await reader.until(expected)).toBe(expected)
    await reader.stop()
  })

  test('without a copy: this is reported', async () => {
    const { reader, readBytes, end } = await readInOutage(LONG)
    const text = LONG.toUpperCase().repeat(30)
    await writeFile(path, text)
    end()
    const expected = `${LONG.repeat(20).slice(0, readBytes)}|${text}`
    expect(await reader.until(expected)).toBe(expected)
    expect(reader.notes).toEqual([
      `${path}: the file was truncated, and no copy of it was found; its lines after byte ${readBytes} may not have been sent`,
    ])
    await reader.stop()
  })

  test('after a copy, although the file is short: the copy is not sent', async () => {
    await writeFile(path, 'one\n')
    const reader = new Reader()
    expect(await reader.until('one\n')).toBe('one\n')
    await sleep(20)
    await copyFile(path, `${path}.1`)
    await truncate(path)
    expect(await reader.until('one\n|')).toBe('one\n|')
    await appendFile(path, 'new\n')
    expect(await reader.until('one\n|new\n')).toBe('one\n|new\n')
    expect(reader.notes).toEqual([])
    await reader.stop()
  })
})
