import { isAlert, type Rule, type RulesFile } from './alert-rules.ts'

/** Prometheus scrapes and evaluates every second here, so these windows have as many samples as in production. */
const WINDOW = '15s'
const FOR = '1s'
const INTERVAL = '1s'

interface QuickRulesFile extends RulesFile {
  readonly groups: readonly (RulesFile['groups'][number] & { readonly interval: string })[]
}

/**
 * The same rules for a test that waits: an alert fires a second after its fault, and windows of rates and growth are 15 s. Thresholds, and
 * the windows in which events are counted, are unchanged.
 */
export function quickRules(file: RulesFile): QuickRulesFile {
  return {
    groups: file.groups.map((group) => ({ ...group, interval: INTERVAL, rules: group.rules.map(quick) })),
  }
}

function quick(rule: Rule): Rule {
  const expr = rule.expr.replaceAll(/\[(?:5|10|15)m\]/g, `[${WINDOW}]`)
  if (!isAlert(rule)) return { ...rule, expr }
  return { ...rule, expr, ...(rule.for !== undefined && { for: FOR }) }
}
