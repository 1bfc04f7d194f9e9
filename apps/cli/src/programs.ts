import { spawn, spawnSync } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { codeOf } from './errors.ts'

type Environment = Readonly<NodeJS.ProcessEnv>

/** Shows text in `PAGER`, by default `less -R`, from its end. */
export function pagerOf(
  { isTTY, columns, rows }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows'>,
  environment: Environment,
): (text: string) => boolean {
  return (text) => {
    if (!isTTY) return false
    const lines = stripVTControlCharacters(text).trimEnd().split('\n')
    const height = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0)
    if (height < rows) return false
    const [program = '', ...args] = (environment['PAGER'] || 'less -R +G').split(' ')
    const env = { LESS: '-R', ...environment }
    const { error } = spawnSync(program, args, { input: text, stdio: ['pipe', 'inherit', 'inherit'], env })
    return codeOf(error) !== 'ENOENT'
  }
}

const browsers: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: 'open', linux: 'xdg-open' }

/** Opens a page in the browser of the desktop, if there is one. */
export function browserOf(platform: NodeJS.Platform, environment: Environment): (url: string) => void {
  const hasDesktop = platform !== 'linux' || environment['DISPLAY'] || environment['WAYLAND_DISPLAY']
  const program = hasDesktop ? browsers[platform] : undefined
  return (url) => {
    if (program === undefined) return
    const child = spawn(program, [url], { stdio: 'ignore', detached: true })
    child.on('error', () => undefined)
    child.unref()
  }
}
