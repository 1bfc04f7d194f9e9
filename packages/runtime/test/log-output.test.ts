import { Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { flushed, logOutput } from '../src/log-output.ts'

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
