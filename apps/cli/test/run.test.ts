import { describe, expect, test } from 'vitest'
import { run } from '../src/run.ts'
import { fakeContext } from './fake-context.ts'

describe('called in a wrong way, it ends with 2 and says why', () => {
  test.each([
    [['nonsense'], "unknown command 'nonsense'"],
    [['keys', 'create'], "required option '--project <id>' not specified"],
    [['keys', 'create', '--project', 'x', '--scope', 'admin'], 'A scope is ingest or read'],
    [['keys', 'create', '--project', 'x', '--expires-in', 'never'], '--expires-in takes'],
    [['keys', 'create', '--project', 'x', '--expires-at', '1d'], '--expires-at takes'],
    [['keys', 'create', '--project', 'x', '--expires-in', '1d', '--expires-at', '2100-01-01'], 'one end'],
    [['keys', 'rotate'], "missing required argument 'key-id'"],
    [['keys', 'rotate', 'key_1', '--overlap', '-1h'], '--overlap takes'],
    [['projects', 'delete'], "missing required argument 'id'"],
    [['projects', 'create', 'x', '--retention-days', '1.5'], 'a whole number from 1'],
    [['logs', '--project', 'demo', '--limit', '1000000'], 'a whole number from 0 to 100000'],
    [['logs', '--project', 'demo', '--level', 'info,banana'], 'there is no level "banana"'],
    [['logs', '--project', 'demo', '--since', 'banana'], '--since takes'],
    [['logs'], '--project'],
    [['send', '--level', 'banana'], '--level takes one of log, debug, info, success, warn, error'],
    [['send', '--environment', 'banana'], '--environment takes one of development, staging, production'],
    [['send', '--retry-for', 'banana'], '--retry-for takes'],
  ])('%j', async (args, reason) => {
    const context = fakeContext()
    expect(await run(args, context)).toBe(2)
    expect(context.written.stderr).toContain(reason)
  })
})

describe('without services it ends with 1 and says what to do', () => {
  test.each([
    [['projects', 'list'], 'no Redis is known: start the local services with `npm start`'],
    [['keys', 'revoke', 'key_1'], 'no Redis is known'],
    [['migrate'], 'no ClickHouse is known'],
    [['logs', '--project', 'demo'], 'no ClickHouse is known'],
    [['send'], 'no API is known'],
    [
      ['projects', 'list', '--redis-url', 'redis://user:secret@127.0.0.1:1'],
      'Redis at redis://127.0.0.1:1 refuses the connection; `npm start` starts the local services',
    ],
    [
      ['logs', '--project', 'demo', '--clickhouse-url', 'http://127.0.0.1:1'],
      'ClickHouse at http://127.0.0.1:1 refuses the connection; `npm start` starts the local services',
    ],
  ])('%j', async (args, reason) => {
    const context = fakeContext()
    expect(await run(args, context)).toBe(1)
    expect(context.written.stderr).toContain(`sluice: ${reason}`)
    expect(context.written.stderr.trimEnd()).not.toContain('\n')
  })
})

test('the help names every command', async () => {
  const context = fakeContext()
  expect(await run(['help'], context)).toBe(0)
  for (const command of ['projects', 'keys', 'migrate', 'logs', 'send']) {
    expect(context.written.stdout).toContain(command)
  }
})
