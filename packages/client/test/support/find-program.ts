import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A program on the PATH, other than those that the repository installed. */
export function findProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const paths = folders.filter((path) => !path.includes('node_modules/.bin')).map((path) => join(path, name))
  return paths.find((path) => existsSync(path))
}
