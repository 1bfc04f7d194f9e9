import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Context } from './context.ts'
import { CliError } from './errors.ts'

/**
 * Has a person type a word before something that cannot be undone. Scripts say `--yes` instead.
 *
 * @param consequence what will happen, as a sentence
 * @throws CliError when nobody can be asked, or the answer is another
 */
export async function confirm(context: Context, consequence: string, word: string): Promise<void> {
  if (!context.stdinIsTerminal) throw new CliError('nobody is there to be asked; say --yes to mean it')
  await context.stderr.write(`${consequence}\nType ${word} to go on: `)
  const lines = createInterface({ input: context.stdin, terminal: false })
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?]
  lines.close()
  if (line?.trim() !== word) throw new CliError('nothing was done')
}
