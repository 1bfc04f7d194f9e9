import { spawnSync } from 'node:child_process'
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { logLimits } from '../src/log-limiter.ts'
import { formattedOutput, type LogFormat, type LogStream } from '../src/logger.ts'

/** Runs a script with the logger. @returns its standard output */
function outputOf(script: string, environment: Readonly<Record<string, string>> = {}): string {
  const { stdout } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', `import { createLogger } from './src/logger.ts'\n${script}`],
    { cwd: new URL('../', import.meta.url), encoding: 'utf8', env: environment },
  )
  return stdout
}

it('logs the error and the name of a failed Redis command, but not its arguments', () => {
  const stdout = outputOf(`
    const failure = () => Object.assign(new Error('WRONGPASS'), { command: { name: 'hello', args: ['3', 'AUTH', 'me', 'secret'] } })
    createLogger('test', 'info').warn({ err: failure() }, 'one server')
    createLogger('test', 'info').warn({ err: Object.assign(new Error('all'), { lastNodeError: failure() }) }, 'a cluster')
    createLogger('test', 'info').warn({ err: Object.assign(new Error('EXECABORT'), { previousErrors: [failure(), failure()] }) }, 'a transaction')
  `)
  expect(stdout.match(/WRONGPASS/g)?.length).toBeGreaterThanOrEqual(2)
  expect(stdout.match(/"name":"hello"/g)).toHaveLength(4)
  expect(stdout).not.toContain('secret')
})

it('reports repeated lines with the fields of the last one, and counts those that were not written', () => {
  const stdout = outputOf(`
    const logger = createLogger('test', 'info')
    for (let attempt = 1; attempt <= 50; attempt += 1) logger.warn({ attempt, password: 'secret' }, 'not stored')
    for (let i = 0; i < 50; i += 1) logger.warn('without fields')
    for (let i = 0; i < 50; i += 1) logger.warn(new Error('no'))
    logger.reportRepeated()
    logger.info({ dropped: logger.logLinesDropped }, 'end')
  `)
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  const written = logLimits.linesMax['warn'] ?? 0
  const repeated = 50 - written
  expect(lines).toHaveLength(3 * (written + 1) + 1)
  expect(lines.find((line) => line['msg'] === 'not stored' && 'repeated' in line)).toMatchObject({
    level: 40,
    name: 'test',
    attempt: 50,
    password: '[redacted]',
    repeated,
  })
  expect(lines.find((line) => line['msg'] === 'without fields' && 'repeated' in line)).toMatchObject({
    repeated,
  })
  expect(lines.find((line) => 'err' in line && 'repeated' in line)).toMatchObject({
    repeated,
    err: { message: 'no' },
  })
  expect(lines.at(-1)).toMatchObject({ msg: 'end', dropped: 3 * repeated })
})

it('does not keep its process alive for a report', () => {
  const startedMs = performance.now()
  outputOf(`const logger = createLogger('test', 'info'); for (let i = 0; i < 50; i += 1) logger.warn('a')`)
  expect(performance.now() - startedMs).toBeLessThan(logLimits.intervalMs / 2)
})

describe('the format', () => {
  const line = '{"level":30,"msg":"working"}\n'

  /** What a stream gets. */
  function written(format: LogFormat, terminal: Pick<LogStream, 'isTTY' | 'hasColors'>): string {
    const texts: string[] = []
    const stream = new Writable({
      decodeStrings: false,
      write: (text: string, _encoding, done) => {
        texts.push(text)
        done()
      },
    })
    formattedOutput(Object.assign(stream, terminal), format).write(line)
    return texts.join('')
  }
  const coloured = { isTTY: true, hasColors: () => true } as const
  const plain = { isTTY: true, hasColors: () => false } as const

  it.each([
    ['auto', 'no terminal', {}],
    ['json', 'a terminal', coloured],
    ['json', 'no terminal', {}],
  ] as const)('%s is JSON on %s', (format, _where, terminal) => {
    expect(written(format, terminal)).toBe(line)
  })

  it('auto is for people on a terminal, with its colours', () => {
    expect(written('auto', coloured)).toContain('\u001B[32mINFO ')
  })

  it.each([
    ['auto', 'a terminal without colours', plain],
    ['pretty', 'a terminal without colours', plain],
    ['pretty', 'no terminal', {}],
  ] as const)('%s is for people, without colours, on %s', (format, _where, terminal) => {
    const text = written(format, terminal)
    expect(text).toMatch(/INFO +working\n$/)
    expect(text).not.toContain('\u001B')
  })
})
