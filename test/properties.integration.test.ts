import { startStack, type Stack } from '@sluice/local'
import { connectClickHouse, type ClickHouseClient } from '@sluice/runtime'
import { entryErrorCodes } from '@sluice/schema'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { foldedMetadata, validEntry } from '../packages/schema/test/support/arbitrary-entry.ts'
import {
  invalidEntry,
  pointsInto,
  type InvalidEntry,
} from '../packages/schema/test/support/arbitrary-invalid.ts'
import { eventually, post } from './support.ts'
import { startTestServices } from './test-services.ts'

type Json = Record<string, unknown>
type Member = { readonly valid: Json } | { readonly invalid: InvalidEntry }

/** Of entries for some three seconds. */
const batches = 100
/** Below the limit of 100, by as much as keeps a batch of large invalid entries below 5 MiB. */
const entriesPerBatch = 50

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack({ services: await startTestServices() })
  clickhouse = connectClickHouse(stack.clickhouse, { requestTimeoutMs: 20_000, connectionsMax: 1 })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

/** The rows in the order in which their entries were sent: an API process gives ids that sort so. */
async function readRows(): Promise<Json[]> {
  const result = await clickhouse.query({
    query: `
      SELECT level, message, environment, source, service, url, pathname, stack, metadata_text,
        toString(toUnixTimestamp64Micro(timestamp)) AS epoch_us, timestamp = received_at AS is_receipt
      FROM logs ORDER BY toString(id)`,
    format: 'JSONEachRow',
  })
  return result.json<Json>()
}

/** What must be stored of an entry. */
function rowOf(entry: Json): Json {
  const columns = ['level', 'message', 'environment', 'source', 'service', 'url', 'pathname', 'stack']
  return {
    ...Object.fromEntries(columns.map((name) => [name, entry[name] ?? ''])),
    metadata_text: JSON.stringify(foldedMetadata(entry)),
    ...(typeof entry['timestamp'] === 'string'
      ? { epoch_us: epochUs(entry['timestamp']) }
      : { is_receipt: 1 }),
  }
}

/** As Date reads it, which knows neither small letters, commas, nor a time without an offset for UTC. */
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

/** What is wrong with an answer: each invalid entry is rejected for the reason it was made for, and nothing else is. */
function faultsOf(members: readonly Member[], { errors = [], ...counts }: BatchAnswer): unknown[] {
  const accepted = members.filter(isValid).length
  const faults: unknown[] = []
  if (counts.accepted !== accepted || counts.rejected !== members.length - accepted) faults.push(counts)
  for (const [index, member] of members.entries()) {
    const own = errors.filter((error) => error.index === index)
    const isRight = isValid(member) ? own.length === 0 : isRejectedRightly(member.invalid, own)
    if (!isRight) faults.push({ member, own })
  }
  return faults
}

function isRejectedRightly({ entry, path, code }: InvalidEntry, errors: BatchAnswer['errors'] = []): boolean {
  const sent: unknown = JSON.parse(JSON.stringify(entry))
  return (
    errors.some((error) => error.path === path && error.code === code) &&
    errors.every((error) => pointsInto(sent, error.path) && Object.hasOwn(entryErrorCodes, error.code))
  )
}

describe('thousands of entries, one in ten of them invalid', () => {
  const seed = Date.now() % 2 ** 31
  const member: fc.Arbitrary<Member> = fc.oneof(
    { arbitrary: validEntry.map((valid) => ({ valid })), weight: 9 },
    { arbitrary: invalidEntry.map((invalid) => ({ invalid })), weight: 1 },
  )
  const sent = fc.sample(fc.array(member, { minLength: entriesPerBatch, maxLength: entriesPerBatch }), {
    seed,
    numRuns: batches,
  })

  it(`are stored as they were sent, each in its place, or rejected for what is wrong (seed ${seed})`, async () => {
    for (const members of sent) {
      const logs = members.map((each) => (isValid(each) ? each.valid : each.invalid.entry))
      const { status, body } = await post(stack, JSON.stringify({ logs }))
      expect(status).toBe(202)
      expect(faultsOf(members, body as BatchAnswer)).toEqual([])
    }
    const expected = sent.flat().filter(isValid)
    const rows = await eventually(20_000, async () => {
      const stored = await readRows()
      expect(stored.length).toBe(expected.length)
      return stored
    })
    for (const [i, { valid }] of expected.entries()) expect(rows[i]).toMatchObject(rowOf(valid))
  }, 120_000)
})
