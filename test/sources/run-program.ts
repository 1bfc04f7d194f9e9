import { spawn } from 'node:child_process'

export interface ProgramRun {
  readonly code: number | null
  readonly output: string
}

export interface RunningProgram {
  /** Its output until now. */
  readonly output: () => string
  readonly ended: Promise<ProgramRun>
  /** Ends a program that runs until it is told to end. */
  readonly stop: () => Promise<void>
}

const OUTPUT_CHARACTERS_MAX = 100_000

/** Starts a program. Its standard output and errors are one text. It is killed after `deadlineMs`. */
export function startProgram(
  [command, ...args]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
  { cwd, deadlineMs }: { readonly cwd?: string; readonly deadlineMs: number },
): RunningProgram {
  let output = ''
  const { promise: ended, resolve, reject } = Promise.withResolvers<ProgramRun>()
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
    ...(cwd === undefined ? {} : { cwd }),
  })
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARACTERS_MAX)
    })
  child.once('error', reject)
  child.once('close', (code) => resolve({ code, output }))
  const stop = async (): Promise<void> => {
    child.kill()
    await ended
  }
  return { output: () => output, ended, stop }
}

/** Runs a program to its end. */
export function runProgram(
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
  options: { readonly cwd?: string; readonly deadlineMs: number },
): Promise<ProgramRun> {
  return startProgram(command, environment, options).ended
}
