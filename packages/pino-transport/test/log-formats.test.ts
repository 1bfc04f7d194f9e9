// The API reads lines of pino that shippers send. An application that changes to the transport must not see other entries.
import { entryOfRecord, levelOf } from '@sluice/records'
import { describe, expect, it } from 'vitest'
import { levelsByName } from '../src/levels.ts'
import { entryOfLine } from '../src/line-entry.ts'
import { pinoLevelNames } from '../src/pino-config.ts'

describe('the rules are those of the API for the records of pino', () => {
  it.each([...levelsByName])('for a level with the name %s', (name, { level }) => {
    expect(levelOf(name)).toBe(level)
  })

  it.each([
    ...Object.keys(pinoLevelNames).map((level) => ({ level: Number(level), msg: 'a' })),
    ...[...levelsByName.keys()].map((level) => ({ level, msg: 'a' })),
    { level: 30, time: 1_531_171_074_631, pid: 1, hostname: 'a', name: 'shop', msg: 'a' },
    { level: 30, time: '2018-07-09T21:17:54.631123456Z', msg: 'a' },
    { level: 30, time: 1_531_171_074, msg: 'a' },
    { level: 30, pid: 1, hostname: 'a', name: 'shop', service: 'other', msg: 'a' },
    { level: 50, err: { type: 'Error', message: 'a', stack: 'Error: a\n    at b', code: 1 }, msg: 'a' },
    { level: 30, url: '/a', pathname: '/a', environment: 'staging', source: 'edge', msg: 'a' },
    { level: 30, url: { a: 1 }, source: 'moon', msg: 'a' },
    { level: 30, metadata: { a: 1 }, a: 2, msg: 'a' },
    { level: 30, a: 1 },
  ])('for the record %j', (record) => {
    const context = { levelNames: pinoLevelNames, messageKey: 'msg', errorKey: 'err', hasService: false }
    const { metadata, ...fields } = entryOfLine(JSON.stringify(record), context)
    const { metadata: expectedMetadata = {}, ...expected } = entryOfRecord(record, { defaultLevel: 'info' })
    expect(fields).toEqual(expected)
    expect(metadata).toEqual(withNameOfLevel(expectedMetadata as Record<string, unknown>))
  })
})

/** The only difference: the transport knows the names of levels. */
function withNameOfLevel(metadata: Record<string, unknown>): Record<string, unknown> {
  const { originalLevel } = metadata
  return typeof originalLevel === 'number'
    ? { ...metadata, originalLevel: pinoLevelNames[originalLevel] }
    : metadata
}
