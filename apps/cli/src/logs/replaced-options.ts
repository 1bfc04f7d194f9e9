import { type Command, InvalidArgumentError, Option } from 'commander'
import { SLUICE } from '../options.ts'

const inQuery = (query: string): string => `Write it in the query: ${SLUICE} logs '${query}'`
const anyOf = (field: string) => (values: string) => {
  const texts = values.split(',').map((text) => (/^[\w./-]+$/.test(text) ? text : JSON.stringify(text)))
  return inQuery(`${field}:${texts.length === 1 ? texts.join('') : `(${texts.join(' OR ')})`}`)
}

/** What to write instead of the options of earlier versions. */
const replaced: Readonly<Record<string, (value: string) => string>> = {
  '--project <id>': () => 'The key selects the project: set SLUICE_READ_KEY.',
  '--level <levels>': anyOf('level'),
  '--service <name>': anyOf('service'),
  '--environment <names>': anyOf('environment'),
  '--search <text>': (text) => inQuery(JSON.stringify(text)),
  '--where <condition>': (condition) => inQuery(condition.replace('=', ':')),
}

/** Makes the options of earlier versions errors with advice. */
export function rejectReplaced(command: Command): void {
  for (const [flags, adviceOf] of Object.entries(replaced)) {
    const reject = (value: string): never => {
      throw new InvalidArgumentError(adviceOf(value))
    }
    command.addOption(new Option(flags).hideHelp().argParser(reject))
  }
}
