import { describe, expect, test } from 'vitest'
import { run } from '../src/run.ts'
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
    [['logs', '--project', 'demo', '--since', 'banana'], '--since must be a duration'],
    [['logs'], 'no project is selected: pass --project, or start the local services with `npm start`'],
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

test('the help lists every command', async () => {
  const context = fakeContext()
  expect(await run(['help'], context)).toBe(0)
  for (const command of ['projects', 'keys', 'migrate', 'logs', 'send', 'dead-letters', 'failed-chunks']) {
    expect(context.written.stdout).toContain(command)
  }
})
