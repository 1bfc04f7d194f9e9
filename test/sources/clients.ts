import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './run-program.ts'

/** The programs of these tests. */
export const clientsFolder = fileURLToPath(new URL('clients/', import.meta.url))
const cache = fileURLToPath(new URL('../../node_modules/.cache/sources/', import.meta.url))

const INSTALL_DEADLINE_MS = 240_000

/** Too large for the dependencies of this repository. */
const npmPackages = [
  '@elastic/elasticsearch@9.4.3',
  '@datadog/datadog-api-client@1.64.0',
  'pino@10',
  'pino-loki@3.0.0',
  'splunk-logging@0.11.1',
  'winston@3',
  'winston-loki@6.1.7',
] as const

const pythonPackages = [
  'datadog-api-client==2.62.0',
  'elasticsearch==9.5.1',
  'python-logging-loki==0.3.1',
  'splunk-handler==3.0.0',
  // python-logging-loki needs it, and does not say so.
  'setuptools<81',
] as const

/** Installs the clients for JavaScript. @returns the folder with the programs */
export async function installNpmClients(): Promise<string> {
  const folder = join(cache, 'npm')
  await mkdir(folder, { recursive: true })
  await cp(clientsFolder, folder, { recursive: true })
  await run(['npm', 'install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, ...npmPackages])
  return folder
}

/** Installs the clients for Python. @returns its interpreter */
export async function installPythonClients(): Promise<string> {
  const folder = join(cache, 'python')
  const python = join(folder, 'bin', 'python')
  await run(['python3', '-m', 'venv', folder])
  await run([python, '-m', 'pip', 'install', '--quiet', ...pythonPackages])
  return python
}

async function run(command: readonly [string, ...string[]]): Promise<void> {
  // Package managers may get their certificates and registries from the environment.
  const environment = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
  const { code, output } = await runProgram(command, environment, { deadlineMs: INSTALL_DEADLINE_MS })
  if (code !== 0) throw new Error(`${command[0]} failed: ${output}`)
}
