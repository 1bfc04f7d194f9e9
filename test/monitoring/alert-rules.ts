import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'

const root = new URL('../../', import.meta.url)
export const rulesFile = new URL('deploy/prometheus/alerts.yml', root)
export const ruleTestsFile = new URL('deploy/prometheus/alerts.test.yml', root)

interface RecordingRule {
  readonly record: string
  readonly expr: string
}

export interface AlertRule {
  readonly alert: string
  readonly expr: string
  /** A duration such as `5m`. Not set: the alert fires at once. */
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export type Rule = RecordingRule | AlertRule

/** A file of rules, as Prometheus reads it. */
export interface RulesFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
}

/** A file of tests, as promtool reads it. */
export interface RuleTestsFile {
  readonly rule_files: readonly string[]
  readonly tests: readonly { readonly alert_rule_test?: readonly { readonly alertname: string }[] }[]
}

export const isAlert = (rule: Rule): rule is AlertRule => 'alert' in rule

export async function readRules(): Promise<RulesFile> {
  return parse(await readFile(rulesFile, 'utf8')) as RulesFile
}

export async function readRuleTests(): Promise<RuleTestsFile> {
  return parse(await readFile(ruleTestsFile, 'utf8')) as RuleTestsFile
}

/** All rules of a file, in their order. */
export const rulesOf = (file: RulesFile): readonly Rule[] => file.groups.flatMap(({ rules }) => rules)

/** The names of the metrics in an expression, as they are written: with `_bucket`, and including recording rules. */
export function metricsIn(expression: string): readonly string[] {
  const withoutStrings = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
  const names = withoutStrings.match(/\b(?:(?:sluice|nodejs|process)_\w+|\w+:\w+:\w+|up(?=\{))/g)
  return [...new Set(names)]
}

/** Prometheus scrapes and evaluates every second here, so these windows have as many samples as in production. */
const WINDOW = '15s'
const FOR = '1s'
const INTERVAL = '1s'

/**
 * The same rules for a test that waits: an alert fires a second after its fault, and windows of rates and growth are 15 s. Thresholds, and
 * the windows in which events are counted, are unchanged.
 */
export function quickRules(file: RulesFile): RulesFile {
  return {
    groups: file.groups.map((group) => ({ ...group, interval: INTERVAL, rules: group.rules.map(quick) })),
  }
}

function quick(rule: Rule): Rule {
  const expr = rule.expr.replaceAll(/\[(?:5|10|15)m\]/g, `[${WINDOW}]`)
  if (!isAlert(rule)) return { ...rule, expr }
  return { ...rule, expr, ...(rule.for !== undefined && { for: FOR }) }
}
