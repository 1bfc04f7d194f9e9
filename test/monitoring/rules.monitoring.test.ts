// Needs promtool: `npm run test:release -- monitoring`.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { rulesFile, ruleTestsFile } from './alert-rules.ts'

const PROMTOOL_DEADLINE_MS = 60_000

/** Runs promtool. @returns whether it succeeds, and its output */
async function promtool(...args: string[]): Promise<{ passed: boolean; output: string }> {
  return new Promise((resolve, reject) => {
    execFile('promtool', args, { timeout: PROMTOOL_DEADLINE_MS }, (error, stdout, stderr) => {
      // Otherwise a missing promtool would count as a test that fails.
      if (error !== null && typeof error.code !== 'number')
        reject(new Error('promtool does not run', { cause: error }))
      else resolve({ passed: error === null, output: `${stdout}${stderr}` })
    })
  })
}

it(
  'promtool accepts the rules, and their tests pass',
  async () => {
    const checked = await promtool('check', 'rules', fileURLToPath(rulesFile))
    expect(checked).toEqual({ passed: true, output: expect.stringContaining('SUCCESS') })
    const tested = await promtool('test', 'rules', fileURLToPath(ruleTestsFile))
    expect(tested).toEqual({ passed: true, output: expect.stringContaining('SUCCESS') })
  },
  2 * PROMTOOL_DEADLINE_MS,
)
