import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Progress } from './run-schedules.ts'

/**
 * Runs schedules with the seeds from `seed` on, on all cores, until one fails.
 *
 * @param mutant the number of a mutant in mutants.ts
 * @throws if a child process ends by itself
 */
export async function runSchedules(
  { seed, count, mutant }: { readonly seed: number; readonly count: number; readonly mutant?: number },
  onProgress: (result: Progress) => void = () => undefined,
): Promise<Progress> {
  const folder = import.meta.dirname
  const cores = Math.min(availableParallelism(), count)
  let result: Progress = { schedules: 0, acknowledged: 0, faults: 0 }
  const stopping = new AbortController()
  const runChild = async (core: number): Promise<void> => {
    const args = [seed + core, cores, Math.ceil((count - core) / cores)]
    const child = fork(join(folder, 'run-schedules.ts'), args.map(String), {
      execArgv: mutant === undefined ? [] : ['--import', join(folder, 'mutate.ts')],
      env: { ...process.env, ...(mutant !== undefined && { SLUICE_MUTANT: String(mutant) }) },
    })
    stopping.signal.addEventListener('abort', () => child.kill('SIGKILL'))
    child.on('message', ({ schedules, acknowledged, faults, failure }: Progress) => {
      result = {
        schedules: result.schedules + schedules,
        acknowledged: result.acknowledged + acknowledged,
        faults: result.faults + faults,
        failure: result.failure ?? failure,
      }
      if (failure !== undefined) stopping.abort()
      onProgress(result)
    })
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
    if (code !== 0 && !stopping.signal.aborted) throw new Error(`the simulator ended with code ${code}`)
  }
  await Promise.all(Array.from({ length: cores }, (_, core) => runChild(core)))
  return result
}
