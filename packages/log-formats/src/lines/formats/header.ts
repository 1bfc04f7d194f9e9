import { levelOf } from '@sluice/records'
import { levelOfFreeWord, setLevel, setLevelOf, setLevelOfLetter } from './level-words.ts'
import { matchAt } from './format.ts'
import { type Part, readPart, skipSeparators } from './header-parts.ts'
import type { LogLine } from './log-line.ts'

/** Layouts have fewer parts before the message. What follows is the message. */
const PARTS_MAX = 8
/** The longest name of a level, with blanks that fill a column. */
const LEVEL_CHARACTERS_MAX = 16

/**
 * Reads what stands between the time and the message in the layouts of most loggers: level, thread, logger, process id, in
 * any order, in brackets, between dashes or bars.
 *
 * A level is accepted only where nothing before it can be part of a message. Without a level, the message begins directly
 * after the time.
 */
export function readHeader(text: string, start: number, line: LogLine): void {
  const from = skipSeparators(text, start)
  const metadata: [name: string, value: string][] = []
  let candidate: Candidate | undefined
  let at = from
  for (let count = 0; count < PARTS_MAX; count += 1) {
    const part = readPart(text, at)
    if (part === undefined) break
    const [, named] = part.text.startsWith('l') ? (PAIR.exec(part.text) ?? []) : []
    if (named !== undefined && setLevelOf(line, named)) break
    const isDoubtful = isDoubtfulLevel(part)
    if (!isDoubtful && readLevel(text, part, line, count === 0))
      return finishHeader(text, part, metadata, line)
    const isLogger = isDoubtful || (count === 0 && isPythonLogger(text, part))
    const name = nameBeforeLevel(text, part, metadata) ?? (isLogger ? 'logger' : undefined)
    if (isDoubtful) candidate ??= { part, before: metadata.length, isFirst: count === 0 }
    if (name === undefined) break
    metadata.push([name, part.text.trim()])
    at = skipSeparators(text, part.end)
  }
  if (candidate !== undefined && readLevel(text, candidate.part, line, candidate.isFirst))
    return finishHeader(text, candidate.part, metadata.slice(0, candidate.before), line)
  line.message = text.slice(from)
}

/** A part that is the level only if no other part is. */
interface Candidate {
  readonly part: Part
  /** The number of values before it. */
  readonly before: number
  readonly isFirst: boolean
}

/** Levels that are names of components, too: `[audit] ERROR failed`, `[trace/7f3] ERROR failed`. */
const DOUBTFUL_WORD = /^ ?(?:config|audit|system|note|log|success) ?$/i
const DOUBTFUL_NAME = /^(?:trace|debug|info)\//i

/** Most parts are known by their first letter: the expressions are slower. */
function isDoubtfulLevel({ text }: Part): boolean {
  switch (text.charAt(0)) {
    case 'T':
    case 't':
    case 'D':
    case 'd':
    case 'I':
    case 'i':
      return text.includes('/') && DOUBTFUL_NAME.test(text)
    case 'E':
    case 'e':
    case 'W':
    case 'w':
      return false
    default:
      return text.length <= LEVEL_CHARACTERS_MAX && DOUBTFUL_WORD.test(text)
  }
}

const LEVEL_IN_CAPITALS = / (?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)[ :]/y

/** One plain word between a time of Python, which has milliseconds after a comma, and the level: `10:00:00,123 root INFO started`. */
function isPythonLogger(text: string, { start, end, kind, text: word }: Part): boolean {
  return (
    kind === 'word' &&
    text.charAt(start - 5) === ',' &&
    /^[a-z][\w-]*$/.test(word) &&
    matchAt(LEVEL_IN_CAPITALS, text, end) !== undefined
  )
}

/** `level=error msg="failed"`: logfmt after a time. */
const PAIR = /^(?:level|lvl)="?([A-Za-z]{3,11})"?$/

function finishHeader(
  text: string,
  level: Part,
  metadata: readonly (readonly [name: string, value: string])[],
  line: LogLine,
): void {
  for (const [name, value] of metadata) line.add(name, value)
  readAfterLevel(text, skipSeparators(text, levelEnd(text, level)), line)
}

function readLevel(text: string, part: Part, line: LogLine, isFirst: boolean): boolean {
  if (part.kind === 'word') {
    const level = levelOfFreeWord(part.text, text.slice(part.end, part.end + 3))
    const isCapital = part.text === part.text.toUpperCase()
    if (
      level === undefined ||
      !(isFirst || isCapital || isBetweenDashes(text, part) || isLabelAfterGroup(text, part))
    )
      return false
    setLevel(line, level, part.text)
    return true
  }
  if (part.kind === '[' && /^[TDIWEF]$/.test(part.text)) {
    setLevelOfLetter(line, part.text)
    return true
  }
  const level = part.text.length > LEVEL_CHARACTERS_MAX ? undefined : levelOf(part.text)
  if (level !== undefined) {
    // In lower case, these are names of components: `[system] started`.
    if (/^(?:config|audit|system)$/.test(part.text)) return false
    setLevel(line, level, part.text)
    return true
  }
  return /[:/ ]/.test(part.text) && readLevelInGroup(part.text, line)
}

/** `[core:error]`, `[Server thread/INFO]`, `[INFO/MainProcess]`, `[worker-1 WARN]`: a level next to another name. */
function readLevelInGroup(text: string, line: LogLine): boolean {
  const [, first, separator = '', second = ''] =
    /^([\w .#-]*?)([:/]| (?=[A-Z]+$))(\w[\w.-]*)$/.exec(text) ?? []
  if (first === undefined) return false
  const last = levelOf(second)
  if (last !== undefined && (separator !== ' ' || second === second.toUpperCase())) {
    setLevel(line, last, second)
    line.add(separator === ':' ? 'module' : 'thread', first)
    return true
  }
  const leading = separator === '/' ? levelOf(first) : undefined
  if (leading === undefined) return false
  setLevel(line, leading, first)
  line.add('thread', second)
  return true
}

function isBetweenDashes(text: string, { start, end }: Part): boolean {
  return text.startsWith(' - ', end) && text.slice(start - 3, start) === ' - '
}

/** `[shop] warn: message`. */
function isLabelAfterGroup(text: string, { start, end }: Part): boolean {
  return text.startsWith('] ', start - 2) && text.startsWith(': ', end)
}

/** A level in capitals that ends like a column. */
const SPACED_LEVEL = /^ [A-Z]{4,8}(?: {2}|:)/
/** A duration since the start of the program. */
const UPTIME = /^\d+(?:\.\d+)?(?:ms|s)$/

/** What a part before the level is; undefined if it may be part of a message. */
function nameBeforeLevel(
  text: string,
  part: Part,
  known: readonly (readonly [string, string])[],
): string | undefined {
  const has = (name: string): boolean => known.some(([other]) => other === name)
  if (/^#?\d+$/.test(part.text)) return has('pid') ? (has('tid') ? undefined : 'tid') : 'pid'
  if (part.kind === 'word') {
    if (!/^[\w$@/][\w.$@/#*:+-]*$/.test(part.text)) return undefined
    if (/^[\w.-]+@[\w.-]+$/.test(part.text)) return 'user'
    const after = text.slice(part.end, part.end + 12)
    const isColumn =
      (/^[a-z]/.test(part.text) && SPACED_LEVEL.test(after)) ||
      /^(?:\s{2}|\s?[|[]|\s-{1,2}\s|\t|:\s*[A-Z]{3,9}\b)/.test(after)
    const isIdentifier = /[\w$](?:[._$/#:-])[\w$]/.test(part.text)
    if (!isColumn && !isIdentifier) return undefined
    return has('logger') ? undefined : 'logger'
  }
  if (UPTIME.test(part.text) && !has('uptime')) return 'uptime'
  if (has('thread')) return has('context') ? undefined : 'context'
  return /^[\w./-]+\.\w+:\d+$/.test(part.text) && !has('caller') ? 'caller' : 'thread'
}

/** The position after a level and what belongs to it: a sub-level as in `INFO[0003]`. */
function levelEnd(text: string, part: Part): number {
  if (part.kind !== 'word' || text.charAt(part.end) !== '[') return part.end
  const [uptime] = /^\[\d{4}\]/.exec(text.slice(part.end, part.end + 8)) ?? ['']
  return part.end + uptime.length
}

/** Reads thread and logger after the level, and what is left is the message. */
function readAfterLevel(text: string, start: number, line: LogLine): void {
  let at = start
  let hasLogger = false
  for (let count = 0; count < PARTS_MAX && !hasLogger; count += 1) {
    const part = readPart(text, at)
    if (part === undefined) break
    const end = part.kind === 'word' ? readWordAfterLevel(text, part, line) : readGroupAfterLevel(part, line)
    if (end === undefined) break
    hasLogger = line.metadata !== undefined && Object.hasOwn(line.metadata, 'logger')
    at = skipSeparators(text, end)
    if (hasLogger) at = readAfterLogger(text, at, part.kind, line)
  }
  line.message = text.slice(at)
}

/** JBoss: `[org.jboss.as] (thread)`. OpenStack: `nova.compute [req-1234 user - -]`, or `[-]` without a request. */
function readAfterLogger(text: string, at: number, kind: Part['kind'], line: LogLine): number {
  const part = readPart(text, at)
  if (part === undefined) return at
  const isThread = kind === '[' && part.kind === '('
  const isRequest = kind === 'word' && part.kind === '[' && /^(?:req-|-$)/.test(part.text)
  if (!isThread && !isRequest) return at
  line.add(isThread ? 'thread' : 'request', part.text)
  return skipSeparators(text, part.end)
}

/** @returns the position after the part; undefined if it belongs to the message */
function readGroupAfterLevel({ kind, text, end }: Part, line: LogLine): number | undefined {
  const has = (name: string): boolean => line.metadata !== undefined && Object.hasOwn(line.metadata, name)
  const [, client] = text.startsWith('client ') ? (/^client ([^\s\]]+)$/.exec(text) ?? []) : []
  if (client !== undefined) {
    line.add('client', client)
    return end
  }
  const [, pid, tid] = text.startsWith('pid ') ? (/^pid (\d+)(?::tid (\d+))?$/.exec(text) ?? []) : []
  if (pid !== undefined) {
    line.add('pid', pid)
    line.add('tid', tid)
    return end
  }
  // ZooKeeper: the thread, the class and its line.
  const [, thread, logger, lineNumber] = text.includes('@') ? (/^(.*):([\w$.]+)@(\d+)$/.exec(text) ?? []) : []
  if (logger !== undefined) {
    line.add('thread', thread)
    line.add('logger', logger)
    line.add('line', lineNumber)
    return end
  }
  const trimmed = text.trim()
  if (isLoggerName(trimmed)) {
    line.add('logger', trimmed)
    return end
  }
  if (
    has('thread') ||
    trimmed.includes('=') ||
    kind === '<' ||
    kind === '{' ||
    (kind === '(' && !/^[\w.:#-]*[\d-][\w.:#-]*$/.test(text))
  ) {
    return undefined
  }
  line.add(/^\d+$/.test(trimmed) && !has('pid') ? 'pid' : 'thread', trimmed)
  return end
}

/** Loguru: module, function and line. */
const LOCATION = /([\w.]{1,200}:[\w<>]{1,100}:\d{1,7}) [-|] /y

/** @returns the position after the part; undefined if it belongs to the message */
function readWordAfterLevel(text: string, part: Part, line: LogLine): number | undefined {
  const { text: word, end } = part
  const after = text.slice(end, end + 4)
  if (/^\d+$/.test(word) && /^ (?:---|\[)/.test(after)) {
    line.add('pid', word)
    return end
  }
  // `vpxd[45715]`: a program and its process id.
  const isLocation = after.startsWith(':') && !after.startsWith(': ')
  const location = isLocation ? matchAt(LOCATION, text, part.start) : undefined
  if (location !== undefined) {
    line.add('logger', location[1])
    return part.start + (location[1] ?? '').length
  }
  const [, program, pid] = word.endsWith(']') ? (/^([\w.-]+)\[(\d+)\]$/.exec(word) ?? []) : []
  if (program !== undefined) {
    line.service = program
    line.add('pid', pid)
    return end
  }
  const [, caller] = word.includes(':') ? (/^([\w./-]+\.\w{1,4}:\d+)$/.exec(word) ?? []) : []
  if (caller !== undefined && /^(?::|\s|\])/.test(after)) {
    line.add('caller', caller)
    return end
  }
  const isLabel = after.startsWith(':')
  // A column with a colon after it: the name may be any.
  const isPaddedLabel = /^\s{2,60}: /.test(text.slice(end, end + 64))
  if (isLoggerName(word) && /^ \[(?:re|-\])/.test(after)) {
    line.add('logger', word)
    return end
  }
  const isColumn = /^\s+-{1,2}\s/.test(after) || after.startsWith('|') || after.startsWith(' |')
  if ((isLabel && isLoggerName(word)) || ((isColumn || isPaddedLabel) && /^[\w$][\w.$:#/@-]*$/.test(word))) {
    line.add('logger', word)
    return end
  }
  return undefined
}

/** `org.example.Shop`, `shop::orders`, `o.e.n.Node`, `Outer$Inner`, `a.b.C:12`. A sentence has no such word. */
function isLoggerName(text: string): boolean {
  return /^[A-Za-z_$][\w$]*(?:(?:\.|::|\$|#)[\w$*<>-]+)+(?::\d+)?$/.test(text)
}
