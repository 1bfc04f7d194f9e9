import { encodeLogs, field, varint } from '@sluice/harness/otlp-logs'
import * as fc from 'fast-check'
import { anyLogs } from './any-logs.ts'
import { type Change, descending, rearrange } from '@sluice/harness/rearrange'

const group = Buffer.concat([varint(9 * 8 + 3), field.varint(1, 3), varint(9 * 8 + 4)])
/** Fields that are unknown in some messages, and of a wrong type in others. */
const others: readonly Buffer[] = [
  field.varint(30, 7),
  field.bytes(31, 'x'),
  field.fixed32(15, 1),
  field.fixed64(14, 9n),
  group,
  field.varint(1, 5),
  field.bytes(3, Buffer.of(255)),
  field.bytes(1, 'a'),
  field.bytes(2, ''),
  field.varint(3, -1),
  field.bytes(5, ''),
]
const REPEATED_MAX = 3

/** Requests of OTLP with their fields in any order, some of them repeated, and with other fields among them. */
export const anyProtobufLogs: fc.Arbitrary<Buffer> = fc
  .tuple(
    anyLogs,
    fc.infiniteStream(fc.nat({ max: 0xffff })),
    fc.constantFrom('ascending', 'descending', 'random', 'random', 'with others', 'repeated', 'overlong'),
  )
  .map(([logs, random, how]) => {
    const next = (below: number): number => (random.next().value ?? 0) % below
    const shuffle: Change = (fields) =>
      fields
        .map((bytes) => [next(0x10000), bytes] as const)
        .toSorted(([a], [b]) => a - b)
        .map(([, bytes]) => bytes)
    let repeated = 0
    const changes: Readonly<Record<typeof how, Change>> = {
      ascending: (fields) => fields,
      overlong: (fields) => fields,
      descending,
      random: shuffle,
      'with others': (fields) => shuffle([...fields, others[next(others.length)] ?? group]),
      repeated: (fields) => {
        const one = fields[next(fields.length)]
        if (one === undefined || next(5) > 0 || repeated === REPEATED_MAX) return fields
        repeated += 1
        return shuffle([...fields, one])
      },
    }
    return rearrange(encodeLogs(logs), changes[how], how === 'overlong' ? () => next(4) : undefined)
  })
