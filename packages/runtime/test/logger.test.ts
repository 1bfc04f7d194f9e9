import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const SCRIPT = `
import { createLogger } from './src/logger.ts'
const failure = () => Object.assign(new Error('WRONGPASS'), { command: { name: 'hello', args: ['3', 'AUTH', 'me', 'secret'] } })
createLogger('test', 'info').warn({ err: failure() }, 'one server')
createLogger('test', 'info').warn({ err: Object.assign(new Error('all'), { lastNodeError: failure() }) }, 'a cluster')
createLogger('test', 'info').warn({ err: Object.assign(new Error('EXECABORT'), { previousErrors: [failure(), failure()] }) }, 'a transaction')
`

it('logs the error and the name of a failed Redis command, but not its arguments', () => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', SCRIPT], {
    cwd: new URL('../', import.meta.url),
    encoding: 'utf8',
  })
  expect(stdout.match(/WRONGPASS/g)?.length).toBeGreaterThanOrEqual(2)
  expect(stdout.match(/"name":"hello"/g)).toHaveLength(4)
  expect(stdout).not.toContain('secret')
})
