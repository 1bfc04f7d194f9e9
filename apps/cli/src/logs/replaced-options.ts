import { type Command, Option } from 'commander'
import { SLUICE } from '../options.ts'

const textOf = (value: string): string => (/^[\w./-]+$/.test(value) ? value : JSON.stringify(value))
const anyOf = (values: string): string => {
  const texts = values.split(',').map((value) => textOf(value.trim()))
  return texts.length === 1 ? String(texts[0]) : `(${texts.join(' OR ')})`
}

/** Options of earlier versions, and what they are in the query language. */
const replaced = {
  level: (levels: string) => `level:${anyOf(levels)}`,
  service: (name: string) => `service:${textOf(name)}`,
  environment: (names: string) => `environment:${anyOf(names)}`,
  search: textOf,
  where: (condition: string) => condition.replace('=', ':'),
  project: () => '',
}

export type ReplacedOptions = Partial<Record<keyof typeof replaced, readonly string[]>>

/** Accepts the options of earlier versions, for `rejectReplaced`. */
export function acceptReplaced(command: Command): void {
  for (const [name, toQuery] of Object.entries(replaced)) {
    const collect = (value: string, before: readonly string[] = []) => [...before, toQuery(value)]
    command.addOption(new Option(`--${name} <value>`).hideHelp().argParser(collect))
  }
}

/** Makes options of earlier versions an error that shows the query to write. */
export function rejectReplaced(command: Command, options: ReplacedOptions, query: string): void {
  const names = Object.keys(replaced) as (keyof typeof replaced)[]
  const used = names.filter((name) => options[name] !== undefined)
  if (used.length === 0) return
  const terms = [...used.flatMap((name) => options[name] ?? []), query].filter((term) => term !== '')
  const project = options.project && '. The key in SLUICE_READ_KEY selects the project'
  command.error(
    `the query replaces ${used.map((name) => `--${name}`).join(', ')}: ` +
      `${SLUICE} logs '${terms.join(' ')}'${project ?? ''}`,
  )
}
