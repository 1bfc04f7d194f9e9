import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Command } from 'commander'
import packageJson from '../../../package.json' with { type: 'json' }
import { createProgram, run } from '../src/run.ts'
import { fakeContext } from './fake-context.ts'

const levels = 'Allowed choices are log, debug, info, success, warn, error'

test.each([
  ['', 'nonsense', "unknown command 'nonsense'"],
  ['', '--nonsense', "unknown option '--nonsense'"],
  ['projects', 'nonsense', "unknown command 'nonsense'"],
  ['projects delete', '', "missing required argument 'id'"],
  ['projects create', 'x --retention-days 1.5', 'a whole number from 1'],
  ['projects update', 'x', 'pass a retention or at least one limit to change'],
  ['projects update', 'x --entries-per-second lots', 'It must be a whole number, unlimited or default.'],
  ['projects update', 'x --burst-bytes unlimited', 'It must be a whole number or default.'],
  ['projects update', 'x --entries-per-second=', 'It must be a whole number, unlimited or default.'],
  ['projects update', 'x --burst-bytes -1', 'It must be a whole number'],
  ['keys create', '', "required option '--project <id>' not specified"],
  ['keys create', '--scope owner', 'Allowed choices are ingest, read, admin'],
  ['keys create', '--expires-in never', 'It must be a duration'],
  ['keys create', '--expires-at 2020-01-01', 'in the future'],
  ['keys rotate', 'key_1 --overlap -1h', 'It must be a duration'],
  ['logs', '--limit 1000000', 'a whole number from 0 to 100000'],
  ['logs', '--timezone Mars', 'It must be a time zone such as UTC'],
  ['logs', '--from banana', 'It must be a duration'],
  ['logs count', '--per banana', 'It must be a duration'],
  ['demo', '--rate 0', 'a whole number from 1 to 1000'],
  ['rows delete', '--project x --since banana', 'It must be a duration'],
  ['rows delete', '--project x level:(', 'the query cannot be parsed:\n  level:(\n        ^ Expected'],
  ['status', '--interval 0', 'a whole number from 1 to 60'],
  ['status', '--interval \u001B[2J', String.raw`argument '\e[2J' is invalid`],
  ['failed-chunks retry', '', 'name the failed chunks by their ids, or pass --all'],
  ['dead-letters purge', 'x --all', 'name the dead letters by their ids, or pass --all'],
  ['send', '--level banana', levels],
  ['send', '--environment x', 'Allowed choices are development, staging, production'],
  ['send', '--retry-for banana', 'It must be a duration'],
  ['send', '--timezone Mars', 'It must be a time zone such as UTC'],
  ['send', '--skip-lines 5-1', 'It must be a number of lines'],
])(
  'the usage error `./sluice %s %s` has exit code 2 and the help of its command',
  async (command, rest, reason) => {
    const context = fakeContext()
    expect(await run(`${command} ${rest}`.split(' ').filter(Boolean), context)).toBe(2)
    const { stderr } = context.written
    expect(stderr).toMatch(/^sluice: /)
    expect(stderr).toContain(reason)
    expect(stderr).not.toContain('error:')
    expect(stderr.endsWith(`\nRun \`${`./sluice ${command}`.trim()} --help\` for usage.\n`)).toBe(true)
  },
)

const refused = 'refused the connection; `npm start` starts the local services'
test.each([
  ['projects list', 'no Redis address is configured: start the local services with `npm start`'],
  ['failed-chunks list', 'no Redis address is configured'],
  ['status', 'no Redis address is configured'],
  ['migrate', 'no ClickHouse address is configured'],
  ['rows delete --project demo --redis-url redis://127.0.0.1:1', 'no ClickHouse address is configured'],
  ['logs', 'no query API address is configured'],
  ['send', 'no API address is configured'],
  [
    'keys revoke key_1 --redis-url redis://user:secret@127.0.0.1:1',
    `Redis at redis://127.0.0.1:1 ${refused}`,
  ],
  ['logs --query-url http://127.0.0.1:2', `the query API at http://127.0.0.1:2 ${refused}`],
  ['migrate --clickhouse-url http://127.0.0.1:1', `ClickHouse at http://127.0.0.1:1 ${refused}`],
])('`sluice %s` without its service has exit code 1 and advice', async (args, reason) => {
  const context = fakeContext({ environment: { SLUICE_READ_KEY: 'slk_read' } })
  expect(await run(args.split(' '), context)).toBe(1)
  expect(context.written.stderr).toContain(`sluice: ${reason}`)
  expect(context.written.stderr.trimEnd()).not.toContain('\n')
})

test('the version is printed', async () => {
  const context = fakeContext()
  expect(await run(['--version'], context)).toBe(0)
  expect(context.written).toEqual({ stdout: `${packageJson.version}\n`, stderr: '' })
})

test('--debug prints the stack traces of an error and its causes, without passwords', async () => {
  const context = fakeContext()
  const args = ['projects', 'list', '--debug', '--redis-url', 'redis://user:secret@127.0.0.1:1']
  expect(await run(args, context)).toBe(1)
  const { stderr } = context.written
  expect(stderr).toMatch(/\n {4}at .*redis-session\.ts/)
  expect(stderr).toMatch(/\nCaused by: Error: connect ECONNREFUSED/)
  expect(stderr).not.toContain('secret')
})

/** The paths of a command and of its subcommands. */
function pathsOf(command: Command, path: readonly string[] = []): string[][] {
  return [[...path], ...command.commands.flatMap((child) => pathsOf(child, [...path, child.name()]))]
}

const COMMANDS = [
  'projects',
  'keys',
  'migrate',
  'logs',
  'open',
  'rows',
  'send',
  'demo',
  'dead-letters',
  'failed-chunks',
  'status',
]
const program = await createProgram(fakeContext(), COMMANDS)

test.each(pathsOf(program).map((path) => [path]))('the help of %j has valid examples', async (path) => {
  const context = fakeContext()
  expect(await run([...path, '--help'], context)).toBe(0)
  const [, section = ''] = context.written.stdout.split('\nExamples:\n')
  const examples = section.split('\n\n', 1)[0]?.split('\n').filter(Boolean) ?? []
  expect(examples).not.toEqual([])
  for (const example of examples) {
    const [, ...args] = example.split('#', 1)[0]?.trim().split(/ +/) ?? []
    // A subcommand has the examples of its group.
    expect([undefined, args[0]]).toContain(path[0])
    const command = takeCommand(args)
    const { operands, unknown } = command.parseOptions(args)
    expect({ example, unknown }).toEqual({ example, unknown: [] })
    const required = command.registeredArguments.filter((argument) => argument.required).length
    expect(operands.length).toBeGreaterThanOrEqual(required)
    const isVariadic = command.registeredArguments.some(({ variadic }) => variadic)
    const max = command === program || isVariadic ? Infinity : command.registeredArguments.length
    expect(operands.length).toBeLessThanOrEqual(max)
  }
})

/** Takes the names of commands off the arguments. @returns the command that they name */
function takeCommand(args: string[], from = program): Command {
  const child = from.commands.find((each) => each.name() === args[0])
  if (child === undefined) return from
  args.shift()
  return takeCommand(args, child)
}

test('the help lists every command, and every environment variable that the command line reads', async () => {
  const context = fakeContext()
  await run(['--help'], context)
  const sources = new URL('../src/', import.meta.url)
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' })
  const text = files
    .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
    .map((file) => readFileSync(new URL(file, sources), 'utf8'))
    .join('\n')
  const named = new Set(text.match(/\b(?:SLUICE|REDIS|CLICKHOUSE)_[A-Z_]*[A-Z]\b/g))
  expect(named).toContain('SLUICE_API_KEY')
  for (const name of [...named, ...COMMANDS]) expect(context.written.stdout).toContain(name)
})
