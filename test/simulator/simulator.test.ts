import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { mutants } from './mutants.ts'
import { runSchedules } from './runner.ts'

const folder = import.meta.dirname
const run = promisify(execFile)

describe('the simulator', () => {
  it('loses and duplicates no entry in 2,000 schedules', { timeout: 900_000 }, async () => {
    const count = 2_000
    const { schedules, acknowledged, faults, failure } = await runSchedules({ seed: 1, count })
    expect(failure).toBeUndefined()
    expect(schedules).toBe(count)
    expect(acknowledged).toBeGreaterThan(count)
    expect(faults).toBeGreaterThan(count)
  })

  it('detects a missing guard, and traces what leads to the failure', { timeout: 240_000 }, async () => {
    const mutant = mutants.findIndex(({ name }) => name === 'a 202 is sent before the chunk is queued')
    const { failure } = await runSchedules({ seed: 1, count: 300, mutant })
    expect(failure?.reason).toMatch(/^lost: (poison-|unknown-)?row-/)
    const trace = await run(
      process.execPath,
      ['--import', join(folder, 'mutate.ts'), join(folder, 'main.ts'), '--trace', String(failure?.seed)],
      { env: { ...process.env, SLUICE_MUTANT: String(mutant) } },
    )
    const lines = trace.stdout.trimEnd().split('\n')
    expect(lines.at(0)).toMatch(/^ +0\.000 s {2}worker-0 starts$/)
    expect(lines.some((line) => / s {2}acknowledged row-/.test(line))).toBe(true)
    // The same seed leads to the same failure.
    expect(lines.at(-1)).toBe(failure?.reason)
  })
})
