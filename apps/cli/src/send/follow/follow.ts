import { processClock } from '@sluice/runtime'
import { parse, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { CliError, UsageError } from '../../errors.ts'
import type { ApiAccess } from '../../service-access.ts'
import { sendLimits, entryBytesMax } from '../entry-sender.ts'
import { Progress } from '../progress.ts'
import type { LineOptions } from '../source-entries.ts'
import { requireFollowable } from '../sources.ts'
import { Tally } from '../tally.ts'
import { FollowedFile } from './followed-file.ts'
import { defaultStatePath, FollowState } from './follow-state.ts'
import { KeyedSender } from './keyed-sender.ts'
import { LogTail } from './log-tail.ts'
import type { DeliveryContext } from './segment-delivery.ts'
import { Slots } from './slots.ts'

/** Each file has an open descriptor, and up to 2 MiB of entries that wait. */
const FILES_MAX = 256

/** For waits: the clock of the machine may be set back meanwhile. */
const monotonicMs = (): number => processClock.nowMs()

export interface FollowOptions {
  readonly api: ApiAccess
  readonly lines: LineOptions
  /** Undefined for a file in the user's folder for state. */
  readonly statePath: string | undefined
}

/**
 * Sends files as they grow, until it is interrupted. What the API has not acknowledged then is sent by the next call.
 *
 * @throws CliError
 */
export async function follow(
  files: readonly string[],
  { api, lines, statePath }: FollowOptions,
  context: Context,
): Promise<void> {
  const paths = await readPaths(files)
  const stop = new AbortController()
  const interrupted = context.abortOnInterrupt()
  const signal = AbortSignal.any([interrupted, stop.signal])
  const failures: Error[] = []
  const onFailure = (error: unknown): void => {
    failures.push(error instanceof Error ? error : new Error(String(error)))
    stop.abort()
  }

  const startedAtMs = monotonicMs()
  let bytesRead = 0
  const progress = new Progress(context.stderr, () => ({
    bytesRead,
    bytesTotal: undefined,
    accepted: tally.accepted,
    rejected: tally.rejected,
    elapsedMs: monotonicMs() - startedAtMs,
  }))
  const tally = new Tally((text) => progress.note(text))
  const note = (text: string): void => progress.note(text)
  const sender = new KeyedSender({ api, signal, note, random: context.random })
  const slots = new Slots(sendLimits.requestsInFlightMax)
  const states = await openStates(paths, statePath, api, context)
  const others = new Set(paths)

  progress.start()
  try {
    await Promise.all(
      paths.map(async (path, index) => {
        const state = states[index]
        if (state === undefined) return
        const segments = state.segmentsOf(path)
        const delivery: DeliveryContext = {
          state,
          slots,
          onFailure,
          post: (entries, key) => sender.send(entries, key),
          onAnswer: (entries, { accepted, rejections }) => {
            tally.onResponse({ entries: entries.length, accepted })
            for (const rejection of rejections)
              tally.onRejection(entries[rejection.index]?.origin ?? path, rejection.error)
          },
        }
        const followed = new FollowedFile({
          path,
          segments,
          delivery,
          lines: { ...lines, defaults: { ...lines.defaults, fallbackService: parse(path).name } },
          monotonicMs,
          onLine: ({ bytes, wasUtf8 }) => {
            bytesRead += bytes
            if (!wasUtf8) tally.repaired += 1
          },
          onTooLong: (origin) => tally.onTooLong(origin, entryBytesMax),
        })
        const tail = new LogTail({
          path,
          others,
          segments,
          signal,
          note,
          monotonicMs,
          sleep: (ms) => sleep(ms, undefined, { signal }).catch(() => undefined),
        })
        await followed.run(tail).catch(onFailure)
      }),
    )
  } finally {
    progress.stop()
    await Promise.all([...new Set(states)].map((state) => state.close()))
  }
  await context.stdout.write(`${tally.summary(monotonicMs() - startedAtMs)}\n`)
  const [failure] = failures
  if (failure !== undefined) throw failure
}

/** @returns absolute paths, each once @throws CliError */
async function readPaths(files: readonly string[]): Promise<string[]> {
  if (files.length === 0 || files.includes('-')) throw new UsageError('--follow needs files, not stdin')
  const paths = [...new Set(files.map((file) => resolve(file)))]
  if (paths.length > FILES_MAX) throw new CliError(`--follow reads at most ${FILES_MAX} files`)
  for (const path of paths) await requireFollowable(path)
  return paths
}

/** One state for each path. With `--state`, it is the same one for all. */
async function openStates(
  paths: readonly string[],
  statePath: string | undefined,
  api: ApiAccess,
  { environment }: Context,
): Promise<FollowState[]> {
  if (statePath !== undefined) {
    const state = await FollowState.open(resolve(statePath))
    return paths.map(() => state)
  }
  const states: FollowState[] = []
  try {
    for (const path of paths)
      states.push(await FollowState.open(defaultStatePath(path, api.url, environment)))
    return states
  } catch (error) {
    await Promise.all(states.map((state) => state.close()))
    throw error
  }
}
