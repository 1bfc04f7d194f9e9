import { matchAt } from './format.ts'
import { setLevelOf } from './level-words.ts'
import type { LogLine } from './log-line.ts'

/** `log show` of macOS: ` 0x1a2b Error 0x0 123 0 kernel: message` after the time. */
const MAC_UNIFIED =
  / (0x[0-9a-f]{1,16}) +(Default|Info|Debug|Error|Fault|Activity) +(0x[0-9a-f]{1,16}) +(\d{1,10}) +(\d{1,10}) +([^:\n]{1,100}): /y

export function readMacUnified(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(MAC_UNIFIED, text, at)
  if (match === undefined) return false
  // `Default` is a level of macOS, too. It says as little as none.
  if (!setLevelOf(line, match[2] ?? '')) line.add('type', match[2])
  line.add('pid', match[4])
  line.add('thread', match[1])
  line.add('activity', match[3] === '0x0' ? undefined : match[3])
  line.add('timeToLive', match[5] === '0' ? undefined : match[5])
  line.service = match[6]
  line.message = text.slice(MAC_UNIFIED.lastIndex)
  return true
}
