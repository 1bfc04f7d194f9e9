import { ProcessError, type SupervisedProcess } from '@sluice/local'
import { integer, pick, type Random } from './random.ts'
import { pause } from './waiting.ts'

/** Between two kills: long enough for requests in all states, short enough for many kills. */
const PAUSE_MS = { min: 300, max: 2_500 } as const
const DOWN_MS = { min: 0, max: 1_500 } as const

/** Kills one of the processes again and again, and starts it anew. @returns how often each was killed; all of them run then */
export async function killUntil(
  over: AbortSignal,
  victims: readonly SupervisedProcess[],
  random: Random,
): Promise<Record<string, number>> {
  const kills: Record<string, number> = {}
  while (!over.aborted) {
    await pause(integer(random, PAUSE_MS.min, PAUSE_MS.max), over)
    const victim = pick(random, victims)
    await victim.stop({ signal: 'SIGKILL' })
    const name = victim.name.replace(/-\d+$/, '')
    kills[name] = (kills[name] ?? 0) + 1
    await pause(integer(random, DOWN_MS.min, DOWN_MS.max), over)
    await victim.start().catch(async (error: unknown) => {
      // A start may fail once, for example because a killed process still holds a lock.
      if (!(error instanceof ProcessError)) throw error
      await victim.start()
    })
  }
  return kills
}
