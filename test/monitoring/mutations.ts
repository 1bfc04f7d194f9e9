import { type AlertRule, secondsOf } from './alert-rules.ts'

/** By how much thresholds and times are changed. A test that does not notice it says little about them. */
const FACTOR = 1.5

export interface Mutation {
  readonly what: string
  readonly rule: AlertRule
}

/** The rule with one change: to a threshold, a time, the severity, or the values that a label may have. */
export function mutationsOf(rule: AlertRule): readonly Mutation[] {
  return [...changedThresholds(rule), ...changedTimes(rule), ...fewerValues(rule), changedSeverity(rule)]
}

function changedThresholds(rule: AlertRule): Mutation[] {
  return [...rule.expr.matchAll(/(==|>=|<=|>|<) (\d+(?:\.\d+)?)/g)].flatMap((match) => {
    const [text, operator = '', threshold = ''] = match
    return otherThresholds(operator, Number(threshold)).map((other) =>
      changed(rule, match.index, text, `${operator} ${other}`),
    )
  })
}

function otherThresholds(operator: string, threshold: number): number[] {
  if (operator === '==') return [1 - threshold]
  return threshold === 0 ? [-1, 1e9] : [threshold * FACTOR, threshold / FACTOR]
}

function changedTimes(rule: AlertRule): Mutation[] {
  const times =
    rule.for === undefined
      ? ['1m']
      : [FACTOR, 1 / FACTOR].map((factor) => `${Math.round(secondsOf(rule.for ?? '') * factor)}s`)
  return times.map((time) => ({ what: `for: ${time}`, rule: { ...rule, for: time } }))
}

/** Removes each alternative of a matcher like `reason=~"a|b"`. */
function fewerValues(rule: AlertRule): Mutation[] {
  return [...rule.expr.matchAll(/[=!]~"([^"]*\|[^"]*)"/g)].flatMap((match) => {
    const [text, list = ''] = match
    const values = list.split('|')
    return values.map((value) => {
      const rest = values.filter((other) => other !== value).join('|')
      return changed(rule, match.index, text, text.replace(list, rest))
    })
  })
}

function changedSeverity(rule: AlertRule): Mutation {
  const severity = rule.labels['severity'] === 'page' ? 'ticket' : 'page'
  return { what: `severity: ${severity}`, rule: { ...rule, labels: { ...rule.labels, severity } } }
}

function changed(rule: AlertRule, index: number, text: string, other: string): Mutation {
  const expr = `${rule.expr.slice(0, index)}${other}${rule.expr.slice(index + text.length)}`
  return { what: `${other} instead of ${text}`, rule: { ...rule, expr } }
}
