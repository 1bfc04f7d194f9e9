import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Command } from 'commander'
import packageJson from '../../../package.json' with { type: 'json' }
import { SLUICE } from '../src/options.ts'
import { createProgram, run } from '../src/run.ts'
import { fakeContext } from './fake-context.ts'

describe('a usage error is reported with exit code 2', () => {
  test.each([
    [['nonsense'], "unknown command 'nonsense'"],
    [['keys', 'create'], "required option '--project <id>' not specified"],
    [['keys', 'create', '--project', 'x', '--scope', 'admin'], 'A scope is ingest or read'],
    [['keys', 'create', '--project', 'x', '--expires-in', 'never'], '--expires-in must be a duration'],
    [['keys', 'create', '--project', 'x', '--expires-at', '1d'], '--expires-at must be an ISO 8601 time'],
    [['keys', 'create', '--project', 'x', '--expires-in', '1d', '--expires-at', '2100-01-01'], 'not both'],
    [['keys', 'rotate'], "missing required argument 'key-id'"],
    [['keys', 'rotate', 'key_1', '--overlap', '-1h'], '--overlap must be a duration'],
    [['projects', 'delete'], "missing required argument 'id'"],
    [['projects', 'create', 'x', '--retention-days', '1.5'], 'a whole number from 1'],
    [['logs', '--project', 'demo', '--limit', '1000000'], 'a whole number from 0 to 100000'],
    [
      ['logs', '--project', 'demo', '--level', 'info,banana'],
      '--level must be one of log, debug, info, success, warn, error, not "banana"',
    ],
    [['logs', '--project', 'demo', '--since', 'banana'], '--from must be a duration'],
    [['logs', '--project', 'demo', '--from', '2261-01-01'], 'pass --until too'],
    [['logs', '--project', 'demo', '--until', 'banana'], '--until must be a duration'],
    [['logs', '--project', 'demo', '--from', '1h', '--until', '2h'], '--from must be before --until'],
    [['logs', '--project', 'demo', '--since', '1h', '--until', '1h'], '--from must be before --until'],
    [
      ['logs', '--project', 'demo', '--environment', 'production,banana'],
      '--environment must be one of development, staging, production, not "banana"',
    ],
    [['logs', '--project', 'demo', '--where', 'level=error'], '--where must be metadata.NAME=VALUE'],
    [
      ['logs', '--project', 'demo', ...Array.from({ length: 21 }, () => ['--where', 'metadata.a=1']).flat()],
      '--where can be repeated up to 20 times',
    ],
    [['logs'], 'no project is selected: pass --project, or start the local services with `npm start`'],
    [['status', '--interval', '0'], 'a whole number from 1 to 60'],
    [['failed-chunks', 'retry'], 'name the failed chunks by their ids, or pass --all'],
    [['failed-chunks', 'purge', 'x', '--all'], 'name the failed chunks by their ids, or pass --all'],
    [['send', '--level', 'banana'], '--level must be one of log, debug, info, success, warn, error'],
    [['send', '--environment', 'banana'], '--environment must be one of development, staging, production'],
    [['send', '--retry-for', 'banana'], '--retry-for must be a duration'],
  ])('%j', async (args, reason) => {
    const context = fakeContext()
    expect(await run(args, context)).toBe(2)
    expect(context.written.stderr).toContain(reason)
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

describe('the version is printed', () => {
  test.each(['--version', '-V'])('with %s', async (flag) => {
    const context = fakeContext()
    expect(await run([flag], context)).toBe(0)
    expect(context.written).toEqual({ stdout: `${packageJson.version}\n`, stderr: '' })
  })
})

describe('an error names the help of its command', () => {
  test.each([
    [['nonsense'], '--help'],
    [['--nonsense'], '--help'],
    [['logs', '--nonsense'], 'logs --help'],
    [['logs'], 'logs --help'],
    [['logs', '--limit', 'x'], 'logs --help'],
    [['projects', 'nonsense'], 'projects --help'],
    [['keys', 'create'], 'keys create --help'],
    [['keys', 'rotate', 'key_1', '--overlap', 'x'], 'keys rotate --help'],
    [['failed-chunks', 'retry'], 'failed-chunks retry --help'],
  ])('%j', async (args, help) => {
    const context = fakeContext()
    expect(await run(args, context)).toBe(2)
    expect(context.written.stderr).toMatch(/^sluice: /)
    expect(context.written.stderr).not.toContain('error:')
    expect(context.written.stderr.endsWith(`\nRun \`${SLUICE} ${help}\` for usage.\n`)).toBe(true)
  })
})

describe('stack traces', () => {
  const args = ['projects', 'list', '--redis-url', 'redis://user:secret@127.0.0.1:1']
  const refused = 'sluice: Redis at redis://127.0.0.1:1 refused the connection'

  test.each([
    [[...args, '--debug'], {}],
    [['--debug', ...args], {}],
    [args, { SLUICE_DEBUG: '1' }],
  ])('are printed with %j and %j, with the causes and without passwords', async (given, environment) => {
    const context = fakeContext({ environment })
    expect(await run(given, context)).toBe(1)
    expect(context.written.stderr).toContain(refused)
    expect(context.written.stderr).toMatch(/\n {4}at .*redis-session\.ts/)
    expect(context.written.stderr).toMatch(/\nCaused by: Error: connect ECONNREFUSED/)
    expect(context.written.stderr).not.toContain('secret')
  })

  test.each([{}, { SLUICE_DEBUG: '' }, { SLUICE_DEBUG: '0' }, { SLUICE_DEBUG: 'false' }])(
    'are not printed with %j',
    async (environment) => {
      const context = fakeContext({ environment })
      expect(await run(args, context)).toBe(1)
      expect(context.written.stderr.trimEnd()).not.toContain('\n')
    },
  )
})

/** Every command with its path. */
function allCommands(command: Command, path: readonly string[] = []): (readonly [string, Command])[] {
  return [
    [path.join(' '), command] as const,
    ...command.commands.flatMap((child) => allCommands(child, [...path, child.name()])),
  ]
}

const COMMANDS = ['projects', 'keys', 'migrate', 'logs', 'send', 'dead-letters', 'failed-chunks', 'status']

describe('each help page has examples with valid options', async () => {
  test.each(allCommands(await createProgram(fakeContext(), COMMANDS)))('sluice %s', async (path, command) => {
    const context = fakeContext()
    expect(await run([...path.split(' ').filter(Boolean), '--help'], context)).toBe(0)
    const [, section = ''] = context.written.stdout.split('\nExamples:\n')
    const lines = section.split('\n\n', 1)[0]?.split('\n').filter(Boolean) ?? []
    expect(lines).not.toEqual([])
    for (const line of lines) {
      const [call = ''] = line.split(/ {2,}# /)
      expect(call.trim()).toMatch(new RegExp(`^${SLUICE} ${path}`))
      // The examples of a group are commands of the group.
      if (command.commands.length > 0) continue
      const args = call.trim().slice(`${SLUICE} ${path}`.length).split(' ').filter(Boolean)
      const { operands, unknown } = command.parseOptions(args)
      expect(unknown).toEqual([])
      const { registeredArguments } = command
      const isEnough = operands.length >= registeredArguments.filter(({ required }) => required).length
      const isFew = operands.length <= registeredArguments.length
      expect({ line, isEnough, isFew }).toEqual({ line, isEnough: true, isFew: true })
    }
  })
})

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
