import { execFile } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A program on the PATH, other than those that the repository installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((path) => !path.includes('node_modules'))
  for (const folder of folders) {
    const path = join(folder, name)
    const isProgram = await run(path, ['--version']).then(
      () => true,
      () => false,
    )
    if (isProgram) return path
  }
  return undefined
}
