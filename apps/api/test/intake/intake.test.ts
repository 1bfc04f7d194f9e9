import { IdSource, rowAsJson } from '@sluice/rows'
import { describe, expect, it } from 'vitest'
import { jsonFormat } from '../../src/intake/body.ts'
import { Intake, type ParsedRequest } from '../../src/intake/intake.ts'
import { parseEntries, problemOf, stamp, textOf, validator } from '../support/intake.ts'

const valid = '{"level":"info","message":"m"}'

const makeIntake = (): Intake => new Intake(validator, new IdSource(Date.now))

const summary = <Scope>({ rows, answer }: ParsedRequest<Scope>) => ({
  count: rows.count,
  lines: textOf(rows).split(/(?<=\n)/),
  answer,
})

/** Scans a body, or parses it. */
async function parse(text: string, intake = makeIntake(), requestStamp = stamp) {
  const body = Buffer.from(text)
  return (
    intake.scan(body, requestStamp, jsonFormat, summary) ??
    summary(await parseEntries(intake, body, requestStamp, jsonFormat))
  )
}

describe('Intake', () => {
  it('makes one line for each entry, and counts the rows', async () => {
    const { count, lines } = await parse(`[${valid},{"level":"error","message":"a\\nb"},${valid}]`)
    expect(count).toBe(3)
    expect(lines).toHaveLength(3)
    for (const line of lines) expect(readRow(line)).toHaveProperty('project_id', 'demo')
  })

  it('adds to each row the project, retention and time of its request', async () => {
    const intake = makeIntake()
    const stamps = [
      stamp,
      { ...stamp, projectId: 'other' },
      { ...stamp, retentionDays: 1 },
      { ...stamp, receivedAtMs: stamp.receivedAtMs + 1 },
      stamp,
    ]
    const stamped: unknown[] = []
    for (const each of stamps) {
      const row = readRow((await parse(valid, intake, each)).lines.join(''))
      stamped.push([row['project_id'], row['expires_on'], row['received_at']])
    }
    expect(stamped).toEqual([
      ['demo', '2026-12-21', '2026-11-20 00:00:00.000'],
      ['other', '2026-12-21', '2026-11-20 00:00:00.000'],
      ['demo', '2026-11-22', '2026-11-20 00:00:00.000'],
      ['demo', '2026-12-21', '2026-11-20 00:00:00.001'],
      ['demo', '2026-12-21', '2026-11-20 00:00:00.000'],
    ])
  })

  it('responds with the id of the row, scanned or parsed', async () => {
    for (const members of ['', ',"n":1e400']) {
      const { answer, lines } = await parse(`{"level":"info","message":"m"${members}}`)
      const { id } = JSON.parse(answer) as { id: string }
      expect(readRow(lines[0] ?? '')).toMatchObject({ id })
    }
  })

  it('describes the first error of an invalid entry in the message', async () => {
    const problem = await problemOf(() => parse('{"level":"info","message":"m","service":7}'))
    expect(problem).toMatchObject({
      code: 'invalid_entry',
      message: '/service: must be of type string or null.',
      errors: [{ path: '/service', code: 'wrong_type' }],
    })
  })

  it('reports missing fields of an entry that is too large to be parsed', async () => {
    const large = `"a":[${'0,'.repeat(34_000)}0]`
    expect(await problemOf(() => parse(`{${large},"service":1}`))).toMatchObject({
      errors: [
        { path: '', code: 'missing' },
        { path: '', code: 'missing' },
        { path: '/service', code: 'wrong_type' },
      ],
    })
    expect(await problemOf(() => parse(`{${large},"level":"info","message":"m"}`))).toMatchObject({
      errors: [{ path: '', code: 'too_large' }],
    })
  })
})

function readRow(line: string): Record<string, string> {
  return JSON.parse(rowAsJson(line) ?? '') as Record<string, string>
}
