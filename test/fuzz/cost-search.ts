import { pick, seededRandom } from '@sluice/harness'
import { EntryValidator, IdSource } from '@sluice/rows'
import { promisify } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import { brotliCompress, constants, deflate, gzip, zstdCompress } from 'node:zlib'
import { jsonFormat, ndjsonFormat } from '../../apps/api/src/intake/body.ts'
import { ContentDecoder, decodeSmall } from '../../apps/api/src/intake/content-encoding.ts'
import { Intake } from '../../apps/api/src/intake/intake.ts'
import { Problem } from '../../apps/api/src/problems.ts'
import { type CostlyBody, drawCostlyBody, mutateCostlyBody, writeCostlyBody } from './costly-body.ts'

/** What a body costs. The smallest of several measurements: another program may take the processor at any time. */
export interface Cost {
  /** The longest time without a turn of the event loop. */
  readonly stallMs: number
  readonly totalMs: number
  readonly heapBytes: number
  readonly bytes: number
  readonly encodedBytes: number
  readonly answer: string
}

export interface Found {
  readonly body: CostlyBody
  readonly cost: Cost
}

const searchSettings = {
  /** Bodies that are kept, and changed further. */
  kept: 12,
  /** The share of the rounds that try a new body instead of a change of a kept one. */
  drawnShare: 0.3,
  measurements: 3,
} as const

const stamp = { projectId: 'demo', retentionDays: 30, receivedAtMs: Date.UTC(2026, 10, 20) }
const encoders = {
  identity: (body: Buffer): Promise<Buffer> => Promise.resolve(body),
  gzip: promisify<Buffer, Buffer>(gzip),
  deflate: promisify<Buffer, Buffer>(deflate),
  br: (body: Buffer): Promise<Buffer> =>
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  zstd: promisify<Buffer, Buffer>(zstdCompress),
}

/** Searches for bodies that hold the event loop for long, by changing the worst ones found (hill climbing). */
export async function searchCosts(
  seed: number,
  rounds: number,
  log: (line: string) => void,
): Promise<readonly Found[]> {
  const random = seededRandom(seed)
  let kept: Found[] = []
  for (let round = 1; round <= rounds; round += 1) {
    const isDrawn = kept.length < searchSettings.kept || random() < searchSettings.drawnShare
    const body = isDrawn ? drawCostlyBody(random) : mutateCostlyBody(pick(random, kept).body, random)
    const found = { body, cost: await measureCost(body) }
    const worst = kept[0]?.cost.stallMs ?? 0
    if (found.cost.stallMs > worst) log(`round ${round}: ${describeFound(found)}`)
    kept = [...kept, found].toSorted((a, b) => b.cost.stallMs - a.cost.stallMs).slice(0, searchSettings.kept)
  }
  return kept
}

/** Measures what the code of the API from the decoder to the rows takes for a body. */
export async function measureCost(body: CostlyBody): Promise<Cost> {
  const content = writeCostlyBody(body)
  const encoded = await encoders[body.encoding](content)
  const intake = new Intake(new EntryValidator(), new IdSource(Date.now))
  const costs: Cost[] = []
  for (let i = 0; i < searchSettings.measurements; i += 1) {
    costs.push({ ...(await measureOnce(intake, encoded, body)), bytes: content.length })
  }
  const smallest = (of: (cost: Cost) => number): number => Math.min(...costs.map(of))
  const [first] = costs
  if (first === undefined) throw new Error('nothing was measured')
  return {
    ...first,
    stallMs: smallest(({ stallMs }) => stallMs),
    totalMs: smallest(({ totalMs }) => totalMs),
    heapBytes: smallest(({ heapBytes }) => heapBytes),
  }
}

async function measureOnce(
  intake: Intake,
  encoded: Buffer,
  { encoding, format }: CostlyBody,
): Promise<Omit<Cost, 'bytes'>> {
  const watch = new TurnWatch()
  const startMs = performance.now()
  const answer = await answerOf(intake, encoded, encoding, format === 'lines')
  const totalMs = performance.now() - startMs
  return { ...(await watch.stop()), totalMs, encodedBytes: encoded.length, answer }
}

async function answerOf(
  intake: Intake,
  encoded: Buffer,
  encoding: string,
  isNdjson: boolean,
): Promise<string> {
  const format = isNdjson ? ndjsonFormat : jsonFormat
  try {
    const body =
      decodeSmall(encoded, encoding) ?? (await new ContentDecoder().decode(encoded, encoding, 'demo'))
    const scanned = intake.scan(body, stamp, format, ({ rows }) => ({ count: rows.count }))
    const count = scanned?.count ?? (await intake.parse(body, stamp, format))?.rows.count
    return `${count} rows`
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
}

/** Measures the time between the turns of the event loop, and the memory in each of them. */
class TurnWatch {
  #lastMs = performance.now()
  #stallMs = 0
  readonly #bytesBefore = usedBytes()
  #bytesMax = 0
  #isStopped = false

  constructor() {
    this.#watch()
  }

  async stop(): Promise<Pick<Cost, 'stallMs' | 'heapBytes'>> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#isStopped = true
    return { stallMs: this.#stallMs, heapBytes: Math.max(0, this.#bytesMax - this.#bytesBefore) }
  }

  #watch(): void {
    setImmediate(() => {
      const nowMs = performance.now()
      this.#stallMs = Math.max(this.#stallMs, nowMs - this.#lastMs)
      this.#bytesMax = Math.max(this.#bytesMax, usedBytes())
      this.#lastMs = performance.now()
      if (!this.#isStopped) this.#watch()
    })
  }
}

/** The heap and the buffers of this process. */
function usedBytes(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

export function describeFound({ body, cost }: Found): string {
  const { stallMs, totalMs, bytes, encodedBytes, heapBytes, answer } = cost
  const figures = [
    `${stallMs.toFixed(1)} ms without a turn`,
    `${totalMs.toFixed(0)} ms in all`,
    `${((totalMs * 1_000) / bytes).toFixed(3)} µs per byte`,
    `${(heapBytes / 1_048_576).toFixed(0)} MiB of heap`,
    `${encodedBytes} of ${bytes} bytes`,
    answer,
  ]
  return `${figures.join(', ')}\n  ${JSON.stringify(body)}`
}
