import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const examples = new URL('../../examples/', import.meta.url)

/** The path of a file or folder in `examples`. */
export function examplePath(path: string): string {
  return fileURLToPath(new URL(path, examples))
}

/**
 * The text of an example, adapted to a test: addresses, keys and paths are replaced. Nothing else may be, since the test is about the
 * text that users copy.
 *
 * @throws Error when the text does not have what should be replaced
 */
export function adaptExample(path: string, replacements: Readonly<Record<string, string>>): string {
  let text = readFileSync(examplePath(path), 'utf8')
  for (const [from, to] of Object.entries(replacements)) {
    if (!text.includes(from)) throw new Error(`examples/${path} does not contain ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}
