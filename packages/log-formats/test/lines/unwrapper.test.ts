import { describe, expect, test } from 'vitest'
import { recordLimits } from '../../src/index.ts'
import { entriesOfText, recordsOf } from './support.ts'

const time = '2026-11-20T10:00:00.123456789Z'

const dockerLine = (log: string, more = {}): string =>
  JSON.stringify({ log, stream: 'stdout', time, ...more })

describe('Kubernetes', () => {
  test('has time and stream before the line of the program', () => {
    expect(
      entriesOfText(`${time} stderr F 2026-11-20 10:00:00,100 WARN slow\n${time} stdout F text`),
    ).toEqual([
      { timestamp: time, level: 'warn', message: 'slow', metadata: { stream: 'stderr' } },
      { timestamp: time, level: 'info', message: 'text', metadata: { stream: 'stdout' } },
    ])
  })

  test('breaks long lines, in each stream for itself', () => {
    const text = `${time} stdout P a\n${time} stderr F b\n${time} stdout P c\n${time} stdout F d`
    expect(entriesOfText(text)).toEqual([
      { timestamp: time, level: 'info', message: 'b', metadata: { stream: 'stderr' } },
      { timestamp: time, level: 'info', message: 'acd', metadata: { stream: 'stdout' } },
    ])
    expect(recordsOf(text).map(({ firstLine, lastLine }) => [firstLine, lastLine])).toEqual([
      [2, 2],
      [1, 4],
    ])
  })

  test('sends the parts of a line without an end, and never gathers more than an entry can have', () => {
    expect(entriesOfText(`${time} stdout P a\n${time} stderr P b`)).toMatchObject([
      { message: 'a' },
      { message: 'b' },
    ])
    const piece = 'x'.repeat(16_384)
    const records = recordsOf(Array.from({ length: 9 }, () => `${time} stdout P ${piece}`).join('\n'))
    expect(records.map(({ head }) => head.message.length)).toEqual([
      recordLimits.charactersMax,
      recordLimits.charactersMax,
      piece.length,
    ])
  })

  test('has stack traces in several lines', () => {
    const text = `${time} stderr F ERROR: no\n${time} stdout F other\n${time} stderr F \tat a.B.c(D.java:1)`
    expect(entriesOfText(text)).toEqual([
      { timestamp: time, level: 'error', message: 'no', metadata: { stream: 'stderr' } },
      { timestamp: time, level: 'info', message: 'other', metadata: { stream: 'stdout' } },
      { timestamp: time, level: 'info', message: '\tat a.B.c(D.java:1)', metadata: { stream: 'stderr' } },
    ])
    expect(entriesOfText(text.replace('stdout F other', 'stderr F \tat x'))).toMatchObject([
      { message: 'no', stack: '\tat x\n\tat a.B.c(D.java:1)' },
    ])
  })

  test('has JSON in the line', () => {
    expect(entriesOfText(`${time} stdout F {"level":"warn","message":"m","a":1}`)).toEqual([
      { timestamp: time, level: 'warn', message: 'm', a: 1, metadata: { stream: 'stdout' } },
    ])
  })

  test('has JSON in the line with a name of the metadata, which stays that of the program', () => {
    const [entry] = entriesOfText(`${time} stdout F {"level":"warn","message":"m","stream":"own"}`)
    expect(entry).toEqual({ timestamp: time, level: 'warn', message: 'm', stream: 'own', metadata: {} })
  })
})

describe('Docker', () => {
  test('has JSON around the line of the program', () => {
    expect(
      entriesOfText(
        `${dockerLine('2026-11-20T10:00:00.1+01:00 ERROR no\n', { attrs: { tag: 't' } })}\n${dockerLine('[INFO] b\r\n')}`,
      ),
    ).toEqual([
      {
        timestamp: '2026-11-20T10:00:00.1+01:00',
        level: 'error',
        message: 'no',
        metadata: { stream: 'stdout', attrs: { tag: 't' } },
      },
      { timestamp: time, level: 'info', message: 'b', metadata: { stream: 'stdout' } },
    ])
  })

  test('breaks long lines, which have no newline', () => {
    expect(entriesOfText(`${dockerLine('a')}\n${dockerLine('b\n')}`)).toMatchObject([{ message: 'ab' }])
  })

  test('is not meant by other JSON with a log', () => {
    const record = { log: 'a', level: 'warn', time: 'soon' }
    expect(entriesOfText(JSON.stringify(record))).toEqual([
      { level: 'warn', message: 'a', metadata: { time: 'soon' } },
    ])
  })

  test('has the name of the container in coloured lines of Compose', () => {
    expect(entriesOfText('\u001B[36mweb-1  |\u001B[0m [INFO] a\n\u001B[36mweb-1  | \u001B[0m  b')).toEqual([
      { level: 'info', message: 'a\n  b', service: 'web', metadata: { container: 'web-1' } },
    ])
  })

  test('has the name of the container in lines of Compose', () => {
    const text = `WARN  | INFO: x\nweb-1  | [INFO] a\nweb-1  |   b\ndb-1   | 2026-11-20 10:00:00 UTC [7] LOG:  c`
    expect(entriesOfText(text)).toEqual([
      { level: 'warn', message: 'INFO: x' },
      { level: 'info', message: 'a\n  b', service: 'web', metadata: { container: 'web-1' } },
      {
        timestamp: '2026-11-20T10:00:00Z',
        level: 'log',
        message: 'c',
        service: 'db',
        metadata: { pid: '7', container: 'db-1' },
      },
    ])
  })
})

test('kubectl has the names of pod and container', () => {
  expect(entriesOfText(`[pod/web-7d/app] ${time} WARN  slow`)).toEqual([
    {
      timestamp: time,
      level: 'warn',
      message: 'slow',
      service: 'app',
      metadata: { pod: 'web-7d', container: 'app' },
    },
  ])
})
