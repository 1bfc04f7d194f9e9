#!/usr/bin/env node
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { fileURLToPath } from 'node:url'
import { styleText } from 'node:util'
import { type Context, INTERRUPTED_EXIT_CODE, type Output } from './context.ts'
import { browserOf, pagerOf } from './programs.ts'
import { run } from './run.ts'

/** By the convention of shells: 128 + 15 (SIGTERM). */
const TERMINATED_EXIT_CODE = 143

const interrupt = new AbortController()
let stopsGracefully = false

function onSignal(exitCode: number): void {
  if (!stopsGracefully || interrupt.signal.aborted) process.exit(exitCode)
  interrupt.abort()
}
process.on('SIGINT', () => onSignal(INTERRUPTED_EXIT_CODE))
process.on('SIGTERM', () => onSignal(TERMINATED_EXIT_CODE))

// EPIPE: the reader closed the pipe, as in `sluice logs | head`. It has read enough, and this is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  process.stderr.write(`sluice: the output cannot be written (${error.message})\n`)
  process.exit(1)
})
process.stderr.on('error', () => process.exit(1))

function output(stream: NodeJS.WriteStream & { readonly fd: number }): Output {
  return {
    isTerminal: isatty(stream.fd),
    colours: styleText('red', 'x', { stream }) !== 'x',
    write: (text) =>
      new Promise((done) => {
        if (stream.write(text)) done()
        else stream.once('drain', done)
      }),
  }
}

const projectRoot = fileURLToPath(new URL('../../../', import.meta.url))

const context: Context = {
  environment: process.env,
  dataDirectory: resolve(projectRoot, process.env['SLUICE_DATA_DIR'] || '.data'),
  stdin: process.stdin,
  stdout: output(process.stdout),
  stderr: output(process.stderr),
  page: pagerOf(process.stdout, process.env),
  browse: browserOf(process.platform, process.env),
  nowMs: Date.now,
  random: Math.random,
  abortOnInterrupt: () => {
    stopsGracefully = true
    return interrupt.signal
  },
  exitCode: 0,
}

process.exitCode = await run(process.argv.slice(2), context)
