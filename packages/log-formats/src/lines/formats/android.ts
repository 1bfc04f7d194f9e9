import { type LineFormat, matchAt } from './format.ts'
import { setLevelOfLetter } from './level-words.ts'
import { LogLine } from './log-line.ts'

/** `  1702  2395 D WindowManager: message` after the time; `-v uid` adds the user before the process id. */
const THREADTIME = /\s+(?:[\w.-]+\s+)?(\d+)\s+(\d+) ([VDIWEFAS]) ([^:\n]{0,100}?)\s{0,30}: ?/y
/** `D/WindowManager( 1702): message` after the time, or alone. */
const TIME = /\s+([VDIWEFAS])\/([^(\n]{1,100}?)\s*\(\s*(\d+)(?::\s*\d+)?\): ?/y
const BRIEF = /([VDIWEFAS])\/([^(\s:][^(\n]{0,100}?)\s*\(\s*(\d+)\): ?/y

/** Android Studio: `  1702-2395/com.example E/Tag: message`, and since 2022 `  1702-2395  Tag   com.example   E  message`. */
const STUDIO_OLD = /\s+(\d{1,10})-(\d{1,10})\/([\w.:?]{1,200}) ([VDIWEFAS])\/([^:\n]{1,100}): ?/y
const STUDIO = / {1,4}(\d{1,10})-(\d{1,10}) {1,4}(\S.{0,60}?) {1,60}([\w.:-]{1,200}) {1,60}([VDIWEFAS])  /y

/** Reads logcat after the time. */
export function readLogcat(text: string, at: number, line: LogLine): boolean {
  const threads = matchAt(THREADTIME, text, at)
  if (threads !== undefined) {
    line.add('pid', threads[1])
    line.add('tid', threads[2])
    finish(text, threads[3], threads[4], THREADTIME.lastIndex, line)
    return true
  }
  const studio = matchAt(STUDIO_OLD, text, at)
  if (studio !== undefined) {
    line.add('pid', studio[1])
    line.add('tid', studio[2])
    line.add('package', studio[3] === '?' ? undefined : studio[3])
    finish(text, studio[4], studio[5], STUDIO_OLD.lastIndex, line)
    return true
  }
  const column = matchAt(STUDIO, text, at)
  if (column !== undefined) {
    line.add('pid', column[1])
    line.add('tid', column[2])
    line.add('package', column[4])
    finish(text, column[5], column[3], STUDIO.lastIndex, line)
    return true
  }
  const time = matchAt(TIME, text, at)
  if (time === undefined) return false
  line.add('pid', time[3])
  finish(text, time[1], time[2], TIME.lastIndex, line)
  return true
}

/** logcat without times. */
export const briefLogcat: LineFormat = (text) => {
  const match = matchAt(BRIEF, text, 0)
  if (match === undefined) return undefined
  const line = new LogLine()
  line.add('pid', match[3])
  finish(text, match[1], match[2], BRIEF.lastIndex, line)
  return line
}

function finish(text: string, letter = '', tag = '', end: number, line: LogLine): void {
  setLevelOfLetter(line, letter)
  line.add('logger', tag)
  line.message = text.slice(end)
}
