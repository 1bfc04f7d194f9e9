// Measures what the API's reading of bodies costs per entry, in one process: JSON, OTLP in Protocol Buffers, and OTLP in JSON.
import { CommandLine } from '@sluice/harness/command-line'
import type { OtlpLogRecord } from '@sluice/harness/otlp-logs'
import { seededRandom } from '@sluice/harness/random'
import type { Rows } from '@sluice/row-scanner'
import { EntryValidator, IdSource, type RequestStamp } from '@sluice/rows'
import type { Entry } from '@sluice/schema'
import { jsonFormat } from '../../apps/api/src/intake/body.ts'
import { Intake } from '../../apps/api/src/intake/intake.ts'
import { readProtobuf } from '../../apps/api/src/protocols/otlp/otlp.ts'
import { EntrySource } from './entries/entry-source.ts'
import { otlpBody } from './load/otlp-body.ts'
import { readPositive } from './options.ts'

const commandLine = new CommandLine(`node bench/src/otlp-cost-main.ts [options]

  --rounds N   how often each case is measured, in turn; the best one counts; default 20
  --help       prints this text
`)
const values = commandLine.read({ rounds: { type: 'string', default: '20' } })
const rounds = readPositive(commandLine, '--rounds', values.rounds)

/** Of each case and round. */
const ENTRIES = 20_000
const SEED = 42
const stamp: RequestStamp = { projectId: 'bench', retentionDays: 30, receivedAtMs: Date.now() }
/** What the SDKs add to a record within a span. */
const withSpan: Partial<OtlpLogRecord> = {
  observedTimeUnixNano: BigInt(stamp.receivedAtMs) * 1_000_000n + 123_457n,
  flags: 1,
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
}

const ids = new IdSource(Date.now)
const intake = new Intake(new EntryValidator(), ids)
const decoder = new Intake(new EntryValidator(), ids, {
  scan: () => undefined,
  scanRecords: (scopeLogs, at) => ({ rows: undefined, bytes: scopeLogs.length - at }),
})
const target = Buffer.alloc(64 * 1024 * 1024)
let rowBytes = 0

/** What the writer does with rows. */
function use<Scope>(rows: Rows<Scope>): { readonly count: number } {
  rows.copyTo(target, 0)
  rowBytes += rows.byteLength
  return { count: rows.count }
}

async function readRecords(reader: Intake, body: Buffer): Promise<void> {
  const { pieces } = await reader.readRecords(readProtobuf(body).records, body, stamp, () => {})
  for (const { rows } of pieces) use(rows)
}

interface Case {
  readonly name: string
  readonly bodies: readonly Buffer[]
  readonly read: (body: Buffer) => Promise<void> | void
  bestUs: number
  rowBytesPerEntry: number
}

function json(entries: readonly Entry[]): Buffer {
  return Buffer.from(JSON.stringify({ logs: entries }))
}

const source = await EntrySource.open(undefined, seededRandom(SEED), Date.now())
const all = Array.from({ length: ENTRIES }, () => source.next())

function inRequests(size: number, encode: (entries: readonly Entry[]) => Buffer): Buffer[] {
  return Array.from({ length: ENTRIES / size }, (_, i) => encode(all.slice(i * size, (i + 1) * size)))
}

const scan = (body: Buffer): void => {
  if (intake.scan(body, stamp, jsonFormat, ({ rows }) => use(rows)) === undefined)
    throw new Error('not scanned')
}
const otlp = (body: Buffer): Promise<void> => readRecords(intake, body)
const measured: Omit<Case, 'bestUs' | 'rowBytesPerEntry'>[] = [
  { name: 'JSON, 100 entries', bodies: inRequests(100, json), read: scan },
  { name: 'OTLP, 100 records', bodies: inRequests(100, (entries) => otlpBody(entries)), read: otlp },
  {
    name: 'OTLP, 100 records in spans',
    bodies: inRequests(100, (entries) => otlpBody(entries, withSpan)),
    read: otlp,
  },
  { name: 'OTLP, 1,000 records', bodies: inRequests(1_000, (entries) => otlpBody(entries)), read: otlp },
  {
    name: 'OTLP, 100 records, without the scanner',
    bodies: inRequests(100, (entries) => otlpBody(entries)),
    read: (body: Buffer) => readRecords(decoder, body),
  },
]
const cases = measured.map((each): Case =>
  Object.assign(each, { bestUs: Number.POSITIVE_INFINITY, rowBytesPerEntry: 0 }),
)

for (let round = 0; round < rounds; round += 1) {
  for (const each of cases) {
    rowBytes = 0
    const before = process.cpuUsage()
    for (const body of each.bodies) await each.read(body)
    const { user, system } = process.cpuUsage(before)
    each.bestUs = Math.min(each.bestUs, (user + system) / ENTRIES)
    each.rowBytesPerEntry = rowBytes / ENTRIES
  }
}

const [first] = cases
for (const { name, bodies, bestUs, rowBytesPerEntry } of cases) {
  const bytes = bodies.reduce((sum, { length }) => sum + length, 0) / ENTRIES
  const ratio = bestUs / (first?.bestUs ?? 1)
  console.log(
    `${name.padEnd(40)} ${bestUs.toFixed(3)} µs per entry, ${ratio.toFixed(2)} × JSON; ` +
      `${bytes.toFixed(0)} bytes as sent, ${rowBytesPerEntry.toFixed(0)} in rows`,
  )
}
