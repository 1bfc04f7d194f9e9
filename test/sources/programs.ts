import type { SupervisedProcess, Supervisor } from '@sluice/local'
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

const root = new URL('../../', import.meta.url)

/** The path of a file or folder in `examples`. */
export const examplePath = (path: string): string => fileURLToPath(new URL(`examples/${path}`, root))

/** The path of what a script of `tools` has prepared. */
export const preparedPath = (path: string): string =>
  fileURLToPath(new URL(`node_modules/.cache/${path}`, root))

/**
 * An example, adapted to a test: addresses, keys and paths are replaced. Nothing else may be, since the test is about what users copy.
 *
 * @throws Error if the example does not contain what should be replaced
 */
export function adaptExample(path: string, replacements: Readonly<Record<string, string>>): string {
  let text = readFileSync(examplePath(path), 'utf8')
  for (const [from, to] of Object.entries(replacements)) {
    if (!text.includes(from)) throw new Error(`examples/${path} does not contain ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

const PATH = process.env['PATH'] ?? ''

/** Whether a program is on the PATH. */
export function isInstalled(program: string): boolean {
  return PATH.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export type Command = readonly [program: string, ...args: string[]]

export interface ProgramRun {
  readonly code: number | null
  /** Standard output and errors. */
  readonly output: string
}

export interface RunningProgram {
  /** Its output until now. */
  readonly output: () => string
  readonly ended: Promise<ProgramRun>
  /** Ends a program that does not end itself. */
  readonly stop: () => Promise<void>
}

const OUTPUT_CHARACTERS_MAX = 100_000
/** Less than the timeout of a test. */
const RUN_DEADLINE_MS = 50_000

interface RunOptions {
  readonly cwd?: string
  readonly deadlineMs?: number
  /** What the program reads from its standard input. */
  readonly input?: Iterable<string> | AsyncIterable<string>
}

/** Starts a program, which is killed after `deadlineMs`. */
export function startProgram(
  [program, ...args]: Command,
  environment: Readonly<Record<string, string>> = {},
  { cwd, deadlineMs = RUN_DEADLINE_MS, input = [] }: RunOptions = {},
): RunningProgram {
  let output = ''
  const { promise: ended, resolve, reject } = Promise.withResolvers<ProgramRun>()
  const child = spawn(program, args, {
    env: { PATH, HOME: process.env['HOME'] ?? '', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
    ...(cwd === undefined ? {} : { cwd }),
  })
  // A program that ends without reading is not an error.
  Readable.from(input)
    .pipe(child.stdin)
    .on('error', () => undefined)
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (piece: string) => {
      output = (output + piece).slice(-OUTPUT_CHARACTERS_MAX)
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
export function runProgram(...given: Parameters<typeof startProgram>): Promise<ProgramRun> {
  return startProgram(...given).ended
}

const READY_DEADLINE_MS = 20_000

export interface Daemon {
  readonly process: SupervisedProcess
  readonly port: number
}

/**
 * Starts a program that listens, in a folder of its own.
 *
 * @param configure writes the configuration. @returns the arguments of the program
 * @param isReady resolves if the program is ready, and rejects otherwise
 */
export function startDaemon(
  supervisor: Supervisor,
  program: string,
  configure: (folder: string, port: number) => readonly string[],
  isReady: (port: number, signal: AbortSignal) => Promise<void>,
  environment: Readonly<Record<string, string>> = {},
): Promise<Daemon> {
  return supervisor.ports.startOn(undefined, async (port) => {
    const folder = join(supervisor.dataDir, `${program}-${port}`)
    mkdirSync(folder)
    const process = await supervisor.start({
      // Stopped together with the API.
      role: 'api',
      name: `${program}-${port}`,
      command: program,
      args: configure(folder, port),
      cwd: folder,
      environment: { PATH, ...environment },
      readyDeadlineMs: READY_DEADLINE_MS,
      isReady: async (signal) => {
        await isReady(port, signal)
        return true
      },
    })
    return { process, port }
  })
}
