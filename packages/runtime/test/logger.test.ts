import { spawnSync } from 'node:child_process'
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
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

describe('the format', () => {
  const coloured = { isTTY: true, hasColors: () => true } as const
  const plain = { isTTY: true, hasColors: () => false } as const

  it.each([
    ['auto', 'no terminal', {}],
    ['json', 'a terminal', coloured],
  ] as const)('%s is JSON on %s', (format, _where, terminal) => {
    expect(formatted(format, terminal)).toBe('{"level":30,"msg":"working"}\n')
  })

  it('auto is for people on a terminal, with its colours', () => {
    expect(formatted('auto', coloured)).toContain('\u001B[32mINFO')
  })

  it.each([
    ['auto', 'a terminal without colours', plain],
    ['pretty', 'no terminal', {}],
  ] as const)('%s is for people, without colours, on %s', (format, _where, terminal) => {
    const line = formatted(format, terminal)
    expect(line).toMatch(/INFO.*working\n$/)
    expect(line).not.toContain('\u001B')
  })

  it('passes no control character of a value to the terminal', () => {
    const evil = '\u001B[2J\u009B31m\u202Eab\rc\b\u007F\\u001b'
    const line = `${JSON.stringify({ level: 40, msg: evil, [evil]: evil, err: { type: 'Error', message: evil, stack: evil } })}\n`
    const shown = formatted('pretty', plain, line)
    // oxlint-disable-next-line no-control-regex -- these must not be shown
    expect(shown.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202E]/u)
    expect(shown).toContain(String.raw`\u001b[2J`)
  })
})

/** A stream that keeps what it gets, and can stall or fail. */
class Sink extends Writable {
  readonly written: string[] = []
  failure: Error | undefined
  #stalled: (() => void)[] | undefined

  constructor() {
    super({ decodeStrings: false, autoDestroy: false })
  }

  override _write(line: string, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    const finish = (): void => {
      if (this.failure === undefined) this.written.push(line)
      done(this.failure)
    }
    if (this.#stalled === undefined) finish()
    else this.#stalled.push(finish)
  }

  stall(): void {
    this.#stalled = []
  }

  resume(): void {
    const waiting = this.#stalled ?? []
    this.#stalled = undefined
    for (const finish of waiting) finish()
  }
}

it('drops lines above the limit, and reports their number with the next line that fits', async () => {
  const sink = new Sink()
  const output = logOutput(sink, { waitingBytesMax: 10 })
  sink.stall()
  for (const line of ['1234\n', '5678\n', 'dropped\n', 'dropped\n']) output.write(line)
  sink.resume()
  await flushed(sink, 1_000)
  output.write('next\n')
  await flushed(sink, 1_000)
  const [first, second, report = '', next] = sink.written.filter((line) => line !== '')
  expect([first, second, next]).toEqual(['1234\n', '5678\n', 'next\n'])
  expect(JSON.parse(report)).toMatchObject({ level: 40, dropped: 2, msg: 'log lines dropped' })
})

it('does not wait for a stalled stream beyond the deadline', async () => {
  const sink = new Sink()
  sink.stall()
  logOutput(sink).write('never written\n')
  await flushed(sink, 50)
  expect(sink.written).toEqual([])
})
