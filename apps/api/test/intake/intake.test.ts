import { EntryValidator, IdSource, type RequestStamp, rowAsJson } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { Intake, type TakenIn } from '../../src/intake/intake.ts'
import { Problem } from '../../src/problems.ts'

const stamp: RequestStamp = { projectId: 'demo', retentionDays: 30, receivedAtMs: Date.UTC(2026, 10, 20) }
const validator = new EntryValidator()
const good = '{"level":"info","message":"m"}'

function take(text: string): TakenIn & { readonly lines: readonly string[] } {
  const taken = new Intake(validator, new IdSource(Date.now)).take(Buffer.from(text), stamp)
  return { ...taken, lines: taken.text.toString().split(/(?<=\n)/) }
}

describe('Intake', () => {
  it('makes a row for each entry, each one line, and counts them', () => {
    const { rows, lines } = take(`[${good},{"level":"error","message":"a\\nb"},${good}]`)
    expect(rows).toBe(3)
    expect(lines).toHaveLength(3)
    for (const line of lines) expect(readRow(line)).toHaveProperty('project_id', 'demo')
  })

  it('stamps each request with its own project, retention and time', () => {
    const intake = new Intake(validator, new IdSource(Date.now))
    const stamps = [
      stamp,
      { ...stamp, projectId: 'other' },
      { ...stamp, retentionDays: 1 },
      { ...stamp, receivedAtMs: stamp.receivedAtMs + 1 },
      stamp,
    ]
    const stamped = stamps.map((each) => {
      const row = readRow(intake.take(Buffer.from(good), each).text.toString())
      return [row['project_id'], row['expires_on'], row['received_at']]
    })
    expect(stamped).toEqual([
      ['demo', '2026-12-21', '2026-11-20 00:00:00.000'],
      ['other', '2026-12-21', '2026-11-20 00:00:00.000'],
      ['demo', '2026-11-22', '2026-11-20 00:00:00.000'],
      ['demo', '2026-12-21', '2026-11-20 00:00:00.001'],
      ['demo', '2026-12-21', '2026-11-20 00:00:00.000'],
    ])
  })

  it('makes no row for what is rejected', () => {
    const { rows, text, answer } = take('[null,5]')
    expect({ rows, bytes: text.length }).toEqual({ rows: 0, bytes: 0 })
    expect(JSON.parse(answer)).toMatchObject({ accepted: 0, rejected: 2 })
  })

  it('answers with the id that the row has, also when it was parsed twice', () => {
    for (const members of ['', ',"n":1e400']) {
      const { answer, lines } = take(`{"level":"info","message":"m"${members}}`)
      const { id } = JSON.parse(answer) as { id: string }
      expect(readRow(lines[0] ?? '')).toMatchObject({ id })
    }
  })

  it('reports each entry once, also when it was parsed twice', () => {
    const { answer } = take(`[{"level":"x","message":"m"},{"level":"info","message":"m","n":1e400}]`)
    expect(JSON.parse(answer)).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 0 }] })
    expect((JSON.parse(answer) as { errors: unknown[] }).errors).toHaveLength(1)
  })

  it('says first what is wrong with an entry', () => {
    const problem = problemOf('{"level":"info","message":"m","service":7}')
    expect(problem).toMatchObject({
      code: 'invalid_entry',
      message: '/service: must be of type string or null.',
      errors: [{ path: '/service', code: 'wrong_type' }],
    })
  })

  it('does not look for halves of surrogate pairs in vain, nor miss any', () => {
    expect(problemOf('{"level":"info","message":"m","a":{"b":"\\uDFFF"}}')).toMatchObject({
      errors: [{ code: 'invalid_unicode' }],
    })
    expect(readRow(take('{"level":"info","message":"\\\\ud800"}').lines[0] ?? '')).toMatchObject({
      message: '\\ud800',
    })
  })
})

function readRow(line: string): Record<string, string> {
  return JSON.parse(rowAsJson(line) ?? '') as Record<string, string>
}

function problemOf(text: string): Problem {
  try {
    take(text)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('the body was taken')
}
