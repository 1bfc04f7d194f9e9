import { spawnSync } from 'node:child_process'
import { Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { logLimits } from '../src/log-limiter.ts'
import { flushed, formattedOutput, type LogFormat, logOutput, type LogStream } from '../src/logger.ts'

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

it('reports repeated lines with the fields of the last one', () => {
  const stdout = outputOf(`
    const logger = createLogger('test', 'info')
    for (let attempt = 1; attempt <= 50; attempt += 1) logger.warn({ attempt, password: 'secret' }, 'not stored')
    for (let i = 0; i < 50; i += 1) logger.warn(new Error('no'))
    logger.reportRepeated()
  `)
  const lines = stdout.trim().split('\n')
  const written = logLimits.linesMax['warn'] ?? 0
  const repeated = 50 - written
  expect(lines).toHaveLength(2 * (written + 1))
  expect(lines.slice(2 * written).map((line): unknown => JSON.parse(line))).toMatchObject([
    { level: 40, name: 'test', msg: 'not stored', attempt: 50, password: '[redacted]', repeated },
    { err: { message: 'no' }, repeated },
  ])
})

/** What a stream gets of a line. */
function formatted(
  format: LogFormat,
  terminal: Pick<LogStream, 'isTTY' | 'hasColors'>,
  line = '{"level":30,"msg":"working"}\n',
): string {
  const lines: string[] = []
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      lines.push(text)
      done()
    },
  })
  formattedOutput(Object.assign(stream, terminal), format).write(line)
  return lines.join('')
}

const coloured = { isTTY: true, hasColors: () => true } as const
const plain = { isTTY: true, hasColors: () => false } as const
const JSON_LINE = /^\{"level":30,"msg":"working"\}\n$/

it.each([
  ['auto', 'no terminal', {}, JSON_LINE],
  ['json', 'a terminal', coloured, JSON_LINE],
  // oxlint-disable-next-line no-control-regex -- the colour
  ['auto', 'a terminal with colours', coloured, /\u001B\[32mINFO/],
  ['auto', 'a terminal without colours', plain, /^[ -~]*INFO[ -~]*working\n$/],
  ['pretty', 'no terminal', {}, /^[ -~]*INFO[ -~]*working\n$/],
] as const)('has its form in the format %s on %s', (format, _where, terminal, form) => {
  expect(formatted(format, terminal)).toMatch(form)
})

it('passes no control character of a value to the terminal', () => {
  const evil = '\u001B[2J\u009B31m\u202Eab\rc\b\u007F\\u001b'
  const line = `${JSON.stringify({ level: 40, msg: evil, [evil]: evil, err: { type: 'Error', message: evil, stack: evil } })}\n`
  const shown = formatted('pretty', plain, line)
  // oxlint-disable-next-line no-control-regex -- these must not be shown
  expect(shown.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202E]/u)
  expect(shown).toContain(String.raw`\u001b[2J`)
})

it('drops lines above the limit, reports their number with the next line that fits, and waits for no stalled stream', async () => {
  const written: string[] = []
  let resume: (() => void) | undefined
  const stream = new Writable({
    decodeStrings: false,
    write: (line: string, _encoding, done) => {
      written.push(line)
      if (resume === undefined) resume = done
      else done()
    },
  })
  const output = logOutput(stream, { waitingBytesMax: 10 })
  for (const line of ['1234\n', '5678\n', 'dropped\n', 'dropped\n']) output.write(line)
  await flushed(stream, 50)
  expect(written).toEqual(['1234\n'])
  resume?.()
  await flushed(stream, 60_000)
  output.write('next\n')
  const [, second, report = '', next] = written.filter((line) => line !== '')
  expect([second, next]).toEqual(['5678\n', 'next\n'])
  expect(JSON.parse(report)).toMatchObject({ level: 40, dropped: 2, msg: 'log lines dropped' })
})
