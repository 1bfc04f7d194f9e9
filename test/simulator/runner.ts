import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Progress } from './run-schedules.ts'

export interface RunResult {
  readonly schedules: number
  readonly acknowledged: number
  readonly faults: number
  readonly failure: Progress['failure']
}

/**
 * Runs schedules with the seeds from `seed` on, on all cores, until one fails.
 *
 * @param mutant the number of a mutant in mutants.ts
 * @throws if a child process ends by itself
 */
export async function runSchedules(
  { seed, count, mutant }: { readonly seed: number; readonly count: number; readonly mutant?: number },
  onProgress: (result: RunResult) => void = () => undefined,
): Promise<RunResult> {
  const cores = Math.min(availableParallelism(), count)
  let result: RunResult = { schedules: 0, acknowledged: 0, faults: 0, failure: undefined }
  const stopping = new AbortController()
  const note = ({ schedules, acknowledged, faults, failure }: Progress): void => {
    result = {
      schedules: result.schedules + schedules,
      acknowledged: result.acknowledged + acknowledged,
      faults: result.faults + faults,
      failure: result.failure ?? failure,
    }
    if (failure !== undefined) stopping.abort()
    onProgress(result)
  }
  await Promise.all(
    Array.from({ length: cores }, (_, core) => {
      const ofCore = Math.ceil((count - core) / cores)
      return runChild([seed + core, cores, ofCore], mutant, note, stopping.signal)
    }),
  )
  return result
}

async function runChild(
  args: readonly number[],
  mutant: number | undefined,
  note: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<void> {
  const folder = import.meta.dirname
  const child = fork(join(folder, 'run-schedules.ts'), args.map(String), {
    execArgv: mutant === undefined ? [] : ['--import', join(folder, 'mutate.ts')],
    env: { ...process.env, ...(mutant !== undefined && { SLUICE_MUTANT: String(mutant) }) },
  })
  let hasFailed = false
  child.on('message', (progress: Progress) => {
    hasFailed ||= progress.failure !== undefined
    note(progress)
  })
  const stop = (): void => void child.kill('SIGKILL')
  signal.addEventListener('abort', stop)
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  signal.removeEventListener('abort', stop)
  if (code !== 0 && !hasFailed && !signal.aborted) throw new Error(`the simulator ended with code ${code}`)
}
