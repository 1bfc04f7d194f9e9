const anyOf = (...sources: readonly string[]): RegExp => new RegExp(`^(?:${sources.join('|')})`)

/** Lines of stack traces: Java, .NET, JavaScript, Python, Go, Ruby, PHP, Rust. */
const FRAME = anyOf(
  String.raw`\s+at [\w$<.[("\x27@/#]`,
  String.raw`at [\w$.<>/]{1,300}\(.{0,300}\)$`,
  String.raw`\s+File "[^"]{1,1000}", line \d+`,
  String.raw`\s*(?:Caused by|Suppressed): `,
  String.raw`\s*\.{3} \d+ (?:more|common frames omitted)`,
  String.raw`goroutine \d+ \[`,
  String.raw`\s+[^\s:]{1,500}\.go:\d+`,
  String.raw`\s*(?:from )?[^\s:]{1,500}:\d+:in `,
  String.raw`\s*#\d{1,4} +\S`,
  String.raw`\s+\d{1,4}: +(?:0x[0-9a-f]+ - )?[\w<]`,
  '--- End of (?:inner|stack)',
)

const HEADLINE = anyOf(
  String.raw`Traceback \(most recent call last\):`,
  'Exception in thread ',
  String.raw`\[?[Ss]tack ?trace:?\]?`,
  'stack backtrace:',
  'panic: ',
  String.raw`thread '[^']{0,200}' panicked at `,
  String.raw`(?:[\w$]{1,100}[.:\\]){0,30}[\w$]{0,100}(?:Exception|Error|Throwable|Fault|Interrupt)\b`,
)

const PYTHON_EXCEPTION = /^(?:\w{1,100}\.){0,20}[A-Za-z_]\w{0,100}(?:: |:?$)/
const TRACEBACK = 'Traceback (most recent call last):'

export const isFrame = (text: string): boolean => FRAME.test(text)
export const isHeadline = (text: string): boolean => HEADLINE.test(text)
export const isTraceback = (text: string): boolean => text.startsWith(TRACEBACK)
export const endsWithTraceback = (text: string): boolean => text.trimEnd().endsWith(TRACEBACK)
/** Whether the line ends a Python traceback, if it is the first line that is not indented. */
export const isPythonException = (text: string): boolean => PYTHON_EXCEPTION.test(text)

/** The index of the first line of the stack trace in the lines after a record's first; -1 if there is none. */
export function findStack(lines: readonly string[]): number {
  const frame = lines.findIndex((line) => isFrame(line) || isTraceback(line))
  // Go has a blank line after the headline.
  const before = lines[frame - 1] === '' ? frame - 2 : frame - 1
  return isHeadline(lines[before]?.trimStart() ?? '') ? before : frame
}
