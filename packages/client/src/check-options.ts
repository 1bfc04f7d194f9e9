import { entryText } from './encoding/entry-text.ts'
import { LimitError } from './encoding/limit-error.ts'
import { copyFields, plainMetadata } from './encoding/metadata.ts'
import { contractLimits } from './limits.ts'
import type { ClientOptions, Settings } from './options.ts'
import { HOUR_MS } from './timers.ts'

/** Visible ASCII. For other characters, `fetch` throws an error with the whole header in its message. */
const KEY = /^[!-~]+$/

const functions = ['fetch', 'onRejected', 'onDropped', 'onRetry', 'onError', 'onSettled'] as const
const spoolMethods = ['open', 'hasRoomFor', 'create', 'close'] as const

/**
 * @param settings the options with all defaults
 * @throws TypeError that names the option. Its message never has the value of the key
 */
export function checkOptions(options: ClientOptions, settings: Settings): void {
  checkKey(settings.apiKey)
  checkLimits(settings)
  requireOneOf(settings, 'overflow', ['drop-oldest', 'drop-newest'])
  requireOneOf(settings, 'compression', ['auto', 'gzip', 'none'])
  if (typeof settings.flushOnExit !== 'boolean') throw new TypeError('`flushOnExit` must be true or false')
  for (const name of functions) {
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw new TypeError(`\`${name}\` must be a function`)
  }
  checkSpool(settings.spool)
  checkEntryOptions(options, settings)
}

function checkKey(apiKey: unknown): void {
  if (apiKey !== undefined && (typeof apiKey !== 'string' || !KEY.test(apiKey)))
    throw new TypeError('`apiKey` must be text of visible ASCII characters, without spaces and line breaks')
}

function checkLimits(settings: Settings): void {
  requireInteger(settings, 'batchEntriesMax', 1, contractLimits.entriesPerRequestMax)
  requireInteger(settings, 'batchBytesMax', 1, contractLimits.bodyBytesMax / 2)
  requireInteger(settings, 'flushIntervalMs', 0, HOUR_MS)
  requireInteger(settings, 'requestsInFlightMax', 1, 100)
  // While requests are in flight, there is room for another one. So a full queue always has something that can be dropped.
  const batches = settings.requestsInFlightMax + 1
  requireInteger(settings, 'queueEntriesMax', batches * settings.batchEntriesMax)
  requireInteger(settings, 'queueBytesMax', batches * settings.batchBytesMax)
  requireInteger(settings, 'requestTimeoutMs', 1, HOUR_MS)
  if (settings.retryForMs !== Infinity) requireInteger(settings, 'retryForMs', 0)
  requireInteger(settings, 'idempotencyWindowMs', 1_000)
}

type NumberName = { [Name in keyof Settings]: Settings[Name] extends number ? Name : never }[keyof Settings]

function requireInteger(
  settings: Settings,
  name: NumberName,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): void {
  const value = settings[name]
  if (!Number.isInteger(value) || value < min || value > max)
    throw new TypeError(`\`${name}\` must be an integer from ${min} to ${max}`)
}

function requireOneOf(settings: Settings, name: 'overflow' | 'compression', values: readonly string[]): void {
  if (!values.includes(settings[name])) throw new TypeError(`\`${name}\` must be one of ${values.join(', ')}`)
}

function checkSpool(spool: unknown): void {
  if (spool === undefined) return
  const methods = (typeof spool === 'object' && spool !== null ? spool : {}) as Record<string, unknown>
  for (const name of spoolMethods) {
    if (typeof methods[name] !== 'function')
      throw new TypeError(`\`spool\` must be a DiskSpool, or another object with the method ${name}`)
  }
}

/** What all entries have must not make each of them invalid. */
function checkEntryOptions({ metadata: given }: ClientOptions, { entryDefaults }: Settings): void {
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given)))
    throw new TypeError('`metadata` must be an object')
  try {
    const { metadata } = plainMetadata({}, copyFields(given ?? {}), undefined)
    entryText({ level: 'info', message: '', ...entryDefaults, metadata })
  } catch (error) {
    if (!(error instanceof LimitError)) throw error
    const { path, message } = error.entryError
    throw new TypeError(`\`${path.slice(1)}\` ${message}`, { cause: error })
  }
}
