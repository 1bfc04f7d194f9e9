// Needs promtool: `npm run test:monitoring`.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import {
  type AlertRule,
  isAlert,
  readRules,
  readRuleTests,
  type Rule,
  rulesFile,
  rulesOf,
  ruleTestsFile,
} from './alert-rules.ts'
import { mutationsOf } from './mutations.ts'

const PROMTOOL_DEADLINE_MS = 60_000
/** An alert has up to twelve mutations. */
const MUTATIONS_DEADLINE_MS = 300_000

const rules = await readRules()
const ruleTests = await readRuleTests()
const alerts = rulesOf(rules).filter(isAlert)
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rules-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

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

/** Runs the tests of one alert with another rule for it. */
async function testWith(rule: AlertRule): Promise<{ passed: boolean; output: string }> {
  const others: readonly Rule[] = rulesOf(rules).filter((other) => !isAlert(other))
  await writeFile(
    join(folder, 'rules.yml'),
    stringify({ groups: [{ name: 'sluice', rules: [...others, rule] }] }),
  )
  const tests = ruleTests.tests.filter(({ alert_rule_test: checks = [] }) =>
    checks.some(({ alertname }) => alertname === rule.alert),
  )
  const testFile = join(folder, 'rules.test.yml')
  await writeFile(testFile, stringify({ ...ruleTests, rule_files: ['rules.yml'], tests }))
  return promtool('test', 'rules', testFile)
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

describe('the tests of an alert fail if its rule is changed', () => {
  it.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s',
    async (_name, rule) => {
      expect(await testWith(rule)).toMatchObject({ passed: true })
      const unnoticed: string[] = []
      for (const { what, rule: other } of mutationsOf(rule)) {
        // If a changed rule were invalid, no expectation would have failed.
        const { passed, output } = await testWith(other)
        if (passed || !output.includes('exp:')) unnoticed.push(what)
      }
      expect(unnoticed).toEqual([])
    },
    MUTATIONS_DEADLINE_MS,
  )
})
