// The application whose log calls are measured, in a process of its own, whose memory and CPU time come only from logging.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { type Logger, pino } from 'pino'

export type PinoDestination = 'null' | 'file' | 'sluice' | 'sluice wait'

export interface PinoLoad {
  readonly destination: PinoDestination
  /** Of the API, or of the file. */
  readonly address: string
  /** Infinity: as fast as possible. */
  readonly linesPerS: number
  readonly windowMs: number
}

export interface PinoFigures {
  readonly usPerCall: number
  readonly linesPerS: number
  readonly cpuUsPerLine: number
  /** The most memory of the process, and of lines that pino had not passed to the thread. */
  readonly rssMbMax: number
  readonly waitingMbMax: number
}

/** Between two pauses: an application has other work, too. */
const LINES_PER_TURN = 100
const WARM_UP_LINES = 2_000
const WARM_UP_MS = 1_000
const SAMPLE_MS = 100
const MIB = 1024 * 1024

const load = JSON.parse(process.argv[2] ?? '') as PinoLoad & { readonly linesPerS: number | null }
const logger = createLogger(load)
logFor(WARM_UP_LINES)
await sleep(WARM_UP_MS)
process.send?.(await measure())
process.disconnect?.()

function createLogger({ destination, address }: PinoLoad): Logger {
  if (destination === 'null') return pino(pino.destination('/dev/null'))
  if (destination === 'file')
    return pino({ transport: { target: 'pino/file', options: { destination: address } } })
  const isWaiting = destination === 'sluice wait'
  const options = { url: address, apiKey: 'slk_bench', ...(isWaiting && { whenFull: 'wait' }) }
  // The types of pino do not have `sync`.
  const transport = { target: '@sluice/pino-transport', options, sync: isWaiting }
  return pino({ transport })
}

/** A line of an HTTP server, with 220 bytes. */
function logFor(lines: number): void {
  for (let i = 0; i < lines; i += 1) {
    logger.info(
      {
        req: { id: 'a1b2c3d4', method: 'GET', url: '/orders/4711' },
        res: { statusCode: 200 },
        responseTime: 12,
      },
      'request completed',
    )
  }
}

async function measure(): Promise<PinoFigures> {
  const startedAtMs = performance.now()
  const cpuBefore = process.cpuUsage()
  const memory = { rss: 0, waiting: 0, sampledAtMs: 0 }
  let lines = 0
  let callsMs = 0
  for (let nowMs = startedAtMs; nowMs < startedAtMs + load.windowMs; nowMs = performance.now()) {
    if (load.linesPerS !== null && lines >= ((nowMs - startedAtMs) / 1_000) * load.linesPerS) {
      await sleep(1)
      continue
    }
    logFor(LINES_PER_TURN)
    callsMs += performance.now() - nowMs
    lines += LINES_PER_TURN
    if (nowMs > memory.sampledAtMs + SAMPLE_MS) sample(memory, nowMs)
    await setImmediate()
  }
  const { user, system } = process.cpuUsage(cpuBefore)
  const tookMs = performance.now() - startedAtMs
  return {
    usPerCall: (callsMs * 1_000) / lines,
    linesPerS: (lines * 1_000) / tookMs,
    cpuUsPerLine: (user + system) / lines,
    rssMbMax: memory.rss / MIB,
    waitingMbMax: memory.waiting / MIB,
  }
}

function sample(memory: { rss: number; waiting: number; sampledAtMs: number }, nowMs: number): void {
  const { rss, arrayBuffers } = process.memoryUsage()
  memory.rss = Math.max(memory.rss, rss)
  memory.waiting = Math.max(memory.waiting, arrayBuffers)
  memory.sampledAtMs = nowMs
}
