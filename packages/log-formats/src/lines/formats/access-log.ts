import { type LineFormat, matchAt } from './format.ts'
import { lineWithTime, type LogLine } from './log-line.ts'

/** Client, or the clients of proxies, identity and user before the time; some servers write their own name before the client. */
const CLIENT =
  /(?:([\w.:-]+) )?([\w.:%-]+(?:, ?[\w.:%-]+){0,10}) (\S+) (\S[^["]{0,100}?) \[(?=\d{1,2}\/[A-Z][a-z]{2}\/\d{4}[: ]|\d{4}-\d\d-\d\dT)/y
const REQUEST =
  /\] "((?:[^"\\]|\\.)*)" (\d{3}|-)(?: (\d+|-)(?= |$))?(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?/y
const REQUEST_LINE = /^([A-Z][A-Z_-]{1,20}) (\S+)(?: (\S+))?$/

/** Apache and nginx: the common and the combined format, with any fields after them. */
export const accessLog: LineFormat = (text, { time }) => {
  const client = matchAt(CLIENT, text, 0)
  if (client === undefined) return undefined
  const line = lineWithTime(text, CLIENT.lastIndex, time)
  if (line === undefined) return undefined
  const request = matchAt(REQUEST, text, time.end)
  if (request === undefined) return undefined
  line.add('server', client[1])
  line.add('client', client[2])
  line.add('identity', client[3])
  line.add('user', client[4])
  const [, requestLine = '', status = '-', bytes, referrer, userAgent] = request
  readRequestLine(requestLine, line)
  if (status === '-') line.level = 'info'
  else addStatus(status, line)
  line.add('bytes', bytes === undefined || bytes === '-' ? undefined : Number(bytes))
  line.add('referrer', referrer)
  line.add('userAgent', userAgent)
  // After the bracket and the blank.
  line.message = text.slice(time.end + 2)
  return line
}

/** The request and its status after a time in brackets: ` "GET / HTTP/1.1" 503 UF 0 12` (Envoy, Django), also after the client. */
const REQUEST_AFTER_BRACKET =
  / (?:([\d.a-fA-F:]{3,45}) )?"([A-Z]{3,10} [^"\\]{1,8000} HTTP\/[\d.]{1,3})" (\d{3})(?=[ ,]|$)/y

export function readRequest(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(REQUEST_AFTER_BRACKET, text, at)
  if (match === undefined) return false
  const [, client, requestLine = '', status = ''] = match
  line.add('client', client)
  readRequestLine(requestLine, line)
  addStatus(status, line)
  line.message = text.slice(at + 1)
  return true
}

/** uWSGI: `[pid: 12|app: 0|req: 1/1] 192.0.2.7 () {28 vars in 300 bytes} [Fri Nov 20 10:00:00 2026] GET / => generated 12 bytes`. */
const UWSGI =
  /\[pid: (\d{1,10})\|app: [^|\]]{1,20}\|req: [^\]]{1,40}\] (\S{1,100}) \(([^)]{0,100})\) \{[^}]{1,60}\} \[/y
const UWSGI_STATUS = /\(HTTP\/[\d.]{1,3} (\d{3})\) \d/

export const uwsgi: LineFormat = (text, { time }) => {
  const match = matchAt(UWSGI, text, 0)
  if (match === undefined) return undefined
  const line = lineWithTime(text, UWSGI.lastIndex, time)
  if (line === undefined) return undefined
  line.add('pid', match[1])
  line.add('client', match[2])
  line.add('user', match[3])
  const request = text.slice(time.end + 2)
  readRequestLine(/^\S+ \S+(?= =>)/.exec(request)?.[0] ?? '', line)
  addStatus(UWSGI_STATUS.exec(request)?.[1], line)
  line.message = text
  return line
}

/** Adds the status of a request, and the level that follows from it. */
export function addStatus(status: string | undefined, line: LogLine): void {
  if (status === undefined) return
  line.level = levelOfStatus(status)
  line.add('status', Number(status))
}

export function levelOfStatus(status: string): 'error' | 'info' | 'warn' {
  if (status.startsWith('5')) return 'error'
  return status.startsWith('4') ? 'warn' : 'info'
}

/** Adds method, path and query of `GET /a?b HTTP/1.1`. Clients send other texts, too: those are only in the message. */
export function readRequestLine(requestLine: string, line: LogLine): void {
  const [, method, target = '', protocol] = REQUEST_LINE.exec(requestLine) ?? []
  if (method === undefined) return
  line.add('method', method)
  readTarget(target, line)
  line.add('protocol', protocol)
}

export function readTarget(target: string, line: LogLine): void {
  const query = target.indexOf('?')
  const path = query === -1 ? target : target.slice(0, query)
  if (path.startsWith('/')) line.pathname = path
  else line.add('target', path)
  if (query !== -1) line.add('query', target.slice(query + 1))
}
