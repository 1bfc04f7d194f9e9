import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Command } from 'commander'
import packageJson from '../../../package.json' with { type: 'json' }
import { SLUICE } from '../src/options.ts'
import { createProgram, run } from '../src/run.ts'
import { fakeContext } from './fake-context.ts'

const many = (count: number, ...args: string[]): string[] => Array.from({ length: count }, () => args).flat()

describe('a usage error is reported with exit code 2 and the help of its command', () => {
  test.each([
    [['nonsense'], '', "unknown command 'nonsense'"],
    [['--nonsense'], '', "unknown option '--nonsense'"],
    [['projects', 'nonsense'], 'projects', "unknown command 'nonsense'"],
    [['projects', 'delete'], 'projects delete', "missing required argument 'id'"],
    [['projects', 'create', 'x', '--retention-days', '1.5'], 'projects create', 'a whole number from 1'],
    [['projects', 'update', 'x'], 'projects update', 'pass at least one limit to change'],
    [
      ['projects', 'update', 'x', '--entries-per-second', 'lots'],
      'projects update',
      'It must be a whole number, unlimited or default.',
    ],
    [
      ['projects', 'update', 'x', '--burst-bytes', 'unlimited'],
      'projects update',
      'It must be a whole number or default.',
    ],
    [['projects', 'update', 'x', '--burst-bytes', '-1'], 'projects update', 'It must be a whole number'],
    [['keys', 'create'], 'keys create', "required option '--project <id>' not specified"],
    [['keys', 'create', '--scope', 'admin'], 'keys create', 'Allowed choices are ingest, read'],
    [['keys', 'create', '--expires-in', 'never'], 'keys create', 'It must be a duration'],
    [['keys', 'create', '--expires-at', '2020-01-01'], 'keys create', 'in the future'],
    [['keys', 'rotate'], 'keys rotate', "missing required argument 'key-id'"],
    [['keys', 'rotate', 'key_1', '--overlap', '-1h'], 'keys rotate', 'It must be a duration'],
    [['logs'], 'logs', 'no project is selected: pass --project, or start the local services'],
    [['logs', '--nonsense'], 'logs', "unknown option '--nonsense'"],
    [['logs', '--limit', '1000000'], 'logs', 'a whole number from 0 to 100000'],
    [
      ['logs', '--level', 'info,banana'],
      'logs',
      'Allowed choices are log, debug, info, success, warn, error',
    ],
    [
      ['logs', '--environment', 'production,x'],
      'logs',
      'Allowed choices are development, staging, production',
    ],
    [['logs', '--since', 'banana'], 'logs', 'It must be a duration'],
    [['logs', '--until', 'banana'], 'logs', 'It must be a duration'],
    [['logs', '--project', 'x', '--from', '2261-01-01'], 'logs', 'pass --until too'],
    [['logs', '--project', 'x', '--from', '1h', '--until', '2h'], 'logs', '--from must be before --until'],
    [['logs', '--project', 'x', '--since', '1h', '--until', '1h'], 'logs', '--from must be before --until'],
    [['logs', '--where', 'level=error'], 'logs', 'It must be metadata.NAME=VALUE'],
    [['logs', ...many(21, '--where', 'metadata.a=1')], 'logs', 'at most 20 conditions'],
    [['status', '--interval', '0'], 'status', 'a whole number from 1 to 60'],
    [['status', '--interval', '\u001B[2J'], 'status', String.raw`argument '\e[2J' is invalid`],
    [['failed-chunks', 'retry'], 'failed-chunks retry', 'name the failed chunks by their ids, or pass --all'],
    [['failed-chunks', 'purge', 'x', '--all'], 'failed-chunks purge', 'by their ids, or pass --all'],
    [['send', '--level', 'banana'], 'send', 'Allowed choices are log, debug, info, success, warn, error'],
    [['send', '--environment', 'x'], 'send', 'Allowed choices are development, staging, production'],
    [['send', '--retry-for', 'banana'], 'send', 'It must be a duration'],
    [['send', '--timezone', 'Mars'], 'send', 'It must be a time zone such as UTC'],
    [['send', '--skip-lines', '5-1'], 'send', 'It must be a number of lines'],
  ])('%j', async (args, command, reason) => {
    const context = fakeContext()
    expect(await run(args, context)).toBe(2)
    const { stderr } = context.written
    expect(stderr).toMatch(/^sluice: /)
    expect(stderr).toContain(reason)
    expect(stderr).not.toContain('error:')
    const help = command === '' ? SLUICE : `${SLUICE} ${command}`
    expect(stderr.endsWith(`\nRun \`${help} --help\` for usage.\n`)).toBe(true)
  })
})

describe('a missing service is reported with exit code 1 and advice', () => {
  test.each([
    [['projects', 'list'], 'no Redis address is configured: start the local services with `npm start`'],
    [['keys', 'revoke', 'key_1'], 'no Redis address is configured'],
    [['failed-chunks', 'list'], 'no Redis address is configured'],
    [['status'], 'no Redis address is configured'],
    [['migrate'], 'no ClickHouse address is configured'],
    [['logs', '--project', 'demo'], 'no ClickHouse address is configured'],
    [['send'], 'no API address is configured'],
    [
      ['projects', 'list', '--redis-url', 'redis://user:secret@127.0.0.1:1'],
      'Redis at redis://127.0.0.1:1 refused the connection; `npm start` starts the local services',
    ],
    [
      ['logs', '--project', 'demo', '--clickhouse-url', 'http://127.0.0.1:1'],
      'ClickHouse at http://127.0.0.1:1 refused the connection; `npm start` starts the local services',
    ],
  ])('%j', async (args, reason) => {
    const context = fakeContext()
    expect(await run(args, context)).toBe(1)
    expect(context.written.stderr).toContain(`sluice: ${reason}`)
    expect(context.written.stderr.trimEnd()).not.toContain('\n')
  })
})

test.each(['--version', '-V'])('the version is printed with %s', async (flag) => {
  const context = fakeContext()
  expect(await run([flag], context)).toBe(0)
  expect(context.written).toEqual({ stdout: `${packageJson.version}\n`, stderr: '' })
})

test.each([
  ['behind the command', ['projects', 'list', '--debug']],
  ['before it', ['--debug', 'projects', 'list']],
])('--debug %s prints the stack traces of an error and its causes, without passwords', async (_, args) => {
  const context = fakeContext()
  expect(await run([...args, '--redis-url', 'redis://user:secret@127.0.0.1:1'], context)).toBe(1)
  const { stderr } = context.written
  expect(stderr).toContain('sluice: Redis at redis://127.0.0.1:1 refused the connection')
  expect(stderr).toMatch(/\n {4}at .*redis-session\.ts/)
  expect(stderr).toMatch(/\nCaused by: Error: connect ECONNREFUSED/)
  expect(stderr).not.toContain('secret')
})

/** The paths of a command and of its subcommands. */
function pathsOf(command: Command, path: readonly string[] = []): string[][] {
  return [[...path], ...command.commands.flatMap((child) => pathsOf(child, [...path, child.name()]))]
}

const COMMANDS = ['projects', 'keys', 'migrate', 'logs', 'send', 'dead-letters', 'failed-chunks', 'status']
const program = await createProgram(fakeContext(), COMMANDS)

test.each(pathsOf(program).map((path) => [path]))('the help of %j has valid examples', async (path) => {
  const context = fakeContext()
  expect(await run([...path, '--help'], context)).toBe(0)
  const [, section = ''] = context.written.stdout.split('\nExamples:\n')
  const examples = section.split('\n\n', 1)[0]?.split('\n').filter(Boolean) ?? []
  expect(examples).not.toEqual([])
  for (const example of examples) {
    const [name, ...args] = example.split('#', 1)[0]?.trim().split(/ +/) ?? []
    expect(name).toBe(SLUICE)
    // A subcommand has the examples of its group.
    expect([undefined, args[0]]).toContain(path[0])
    const command = takeCommand(args)
    const { operands, unknown } = command.parseOptions(args)
    expect({ example, unknown }).toEqual({ example, unknown: [] })
    const required = command.registeredArguments.filter((argument) => argument.required).length
    expect(operands.length).toBeGreaterThanOrEqual(required)
    const max = command === program ? Infinity : command.registeredArguments.length
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

test('the help lists every environment variable that the command line reads', async () => {
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
  for (const name of named) expect(context.written.stdout).toContain(name)
})

test('the help lists every command', async () => {
  const context = fakeContext()
  expect(await run(['help'], context)).toBe(0)
  for (const command of COMMANDS) expect(context.written.stdout).toContain(command)
})
