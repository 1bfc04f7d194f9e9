import { describe, expect, test } from 'vitest'
import { Tally } from '../../src/send/tally.ts'

describe('Tally', () => {
  test('counts every line once', () => {
    const tally = new Tally(() => undefined)
    tally.onResponse({ entries: 2_000, accepted: 1_998 })
    tally.onTooLong('file:7', 100)
    tally.onUnanswered(
      Array.from({ length: 50 }, (_, index) => ({
        entry: '',
        bytes: 0,
        origin: '',
        firstLine: 100 + index,
        lastLine: 100 + index,
      })),
    )
    expect(tally.summary(500)).toBe(
      '2,000 of 2,051 entries sent, 1,998 accepted, 3 rejected, 50 not sent or without a response; 0.5 s, 4,000 entries/s.',
    )
    expect(tally.unansweredLines).toEqual([{ first: 100, last: 149 }])
  })

  test('reports the first rejections, and that there are more', () => {
    const notes: string[] = []
    const tally = new Tally((text) => notes.push(text))
    for (let line = 1; line <= 50; line += 1) {
      tally.onRejection(`file:${line}`, { path: '/level', message: 'level is required' })
    }
    expect(notes).toHaveLength(11)
    expect(notes[0]).toBe('file:1: /level level is required')
    expect(notes.at(-1)).toBe('Further rejections are not shown.')
  })
})
