import { eventually, postLogs, runsOf } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { foldedMetadata, invalidEntry, pointsInto, validEntry } from '@sluice/rows/testing'
import { entryErrorCodes } from '@sluice/schema'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

type Json = Record<string, unknown>
type InvalidEntry = typeof invalidEntry extends fc.Arbitrary<infer Value> ? Value : never
type Member = { readonly valid: Json } | { readonly invalid: InvalidEntry }

/** Sending them takes about three seconds. */
const batches = 100
/** Less than the limit of 100: a batch of large invalid entries must stay below 5 MiB. */
const entriesPerBatch = 50

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation()
})

afterAll(() => installation?.stop())

/** The rows in the order in which their entries were sent: the ids of one API process are ascending. */
function readRows(): Promise<Json[]> {
  return select(
    installation.clickhouse,
    `SELECT level, message, environment, source, service, url, pathname, stack, metadata_text,
        toString(toUnixTimestamp64Micro(timestamp)) AS epoch_us, timestamp = received_at AS is_receipt
      FROM logs ORDER BY toString(id)`,
  )
}

/** The expected row of an entry. */
function rowOf(entry: Json): Json {
  const columns = ['level', 'message', 'environment', 'source', 'service', 'url', 'pathname', 'stack']
  return {
    ...Object.fromEntries(columns.map((name) => [name, entry[name] ?? ''])),
    metadata_text: foldedMetadata(entry),
    ...(typeof entry['timestamp'] === 'string'
      ? { epoch_us: epochUs(entry['timestamp']) }
      : { is_receipt: 1 }),
  }
}

/** Normalizes the string for `Date`, which supports neither lower case nor commas, and reads a time without an offset as local. */
function epochUs(timestamp: string): string {
  const [, date, time, fraction = '', offset] = /^(.{10})t(.{8})(?:[.,](\d+))?(.*)$/i.exec(timestamp) ?? []
  const wholeMs = Date.parse(`${date}T${time}${offset === '' ? 'Z' : offset?.toUpperCase()}`)
  return String(BigInt(wholeMs) * 1_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6)))
}

function isValid(member: Member): member is { readonly valid: Json } {
  return 'valid' in member
}

interface BatchAnswer {
  readonly accepted: number
  readonly rejected: number
  readonly errors?: readonly { index: number; path: string; code: string; message: string }[]
}

/** Finds what is wrong with a response: exactly the invalid entries must be rejected, each for the expected reason. */
function faultsOf(members: readonly Member[], { errors = [], ...counts }: BatchAnswer): unknown[] {
  const accepted = members.filter(isValid).length
  const faults: unknown[] = []
  if (counts.accepted !== accepted || counts.rejected !== members.length - accepted) faults.push(counts)
  for (const [index, member] of members.entries()) {
    const own = errors.filter((error) => error.index === index)
    const isCorrect = isValid(member) ? own.length === 0 : isRejectedCorrectly(member.invalid, own)
    if (!isCorrect) faults.push({ member, own })
  }
  return faults
}

function isRejectedCorrectly(
  { entry, path, code }: InvalidEntry,
  errors: BatchAnswer['errors'] = [],
): boolean {
  const sent: unknown = JSON.parse(JSON.stringify(entry))
  return (
    errors.some((error) => error.path === path && error.code === code) &&
    errors.every((error) => pointsInto(sent, error.path) && Object.hasOwn(entryErrorCodes, error.code))
  )
}

describe('thousands of entries, one in ten of them invalid', () => {
  const member: fc.Arbitrary<Member> = fc.oneof(
    { arbitrary: validEntry.map((valid) => ({ valid })), weight: 9 },
    { arbitrary: invalidEntry.map((invalid) => ({ invalid })), weight: 1 },
  )
  const batch = fc.array(member, { minLength: entriesPerBatch, maxLength: entriesPerBatch })
  const sent = fc.sample(batch, runsOf(batches))

  it('are stored unchanged and in order, or rejected for the expected reason', async () => {
    for (const members of sent) {
      const logs = members.map((each) => (isValid(each) ? each.valid : each.invalid.entry))
      const { status, body } = await postLogs(installation, JSON.stringify({ logs }))
      expect(status).toBe(202)
      expect(faultsOf(members, body as BatchAnswer)).toEqual([])
    }
    const expected = sent.flat().filter(isValid)
    const rows = await eventually(async () => {
      const stored = await readRows()
      expect(stored.length).toBe(expected.length)
      return stored
    })
    for (const [i, { valid }] of expected.entries()) expect(rows[i]).toMatchObject(rowOf(valid))
  }, 120_000)
})
