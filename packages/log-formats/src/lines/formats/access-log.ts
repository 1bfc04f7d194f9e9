import { type LineFormat, matchAt } from './format.ts'
import { LogLine } from './log-line.ts'

/** Client, identity and user before the time; some servers write their own name before the client. */
const CLIENT = /(?:([\w.:-]+) )?([\w.:%-]+) (\S+) (\S[^["]{0,100}?) \[(?=\d{1,2}\/[A-Z][a-z]{2}\/\d{4}:)/y
const REQUEST = /\] "((?:[^"\\]|\\.)*)" (\d{3}|-) (\d+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?/y
const REQUEST_LINE = /^([A-Z][A-Z_-]{1,20}) (\S+)(?: (\S+))?$/

/** Apache and nginx: the common and the combined format, with any fields after them. */
export const accessLog: LineFormat = (text, { time }) => {
  const client = matchAt(CLIENT, text, 0)
  if (client === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, CLIENT.lastIndex)
  if (line.timestamp === undefined) return undefined
  const request = matchAt(REQUEST, text, time.end)
  if (request === undefined) return undefined
  line.add('server', client[1])
  line.add('client', client[2])
  line.add('identity', client[3])
  line.add('user', client[4])
  const [, requestLine = '', status = '-', bytes, referrer, userAgent] = request
  readRequestLine(requestLine, line)
  line.level = levelOfStatus(status)
  line.add('status', status === '-' ? undefined : Number(status))
  line.add('bytes', bytes === '-' ? undefined : Number(bytes))
  line.add('referrer', referrer)
  line.add('userAgent', userAgent)
  // After the bracket and the blank.
  line.message = text.slice(time.end + 2)
  return line
}

/** HAProxy without syslog: client and port before the time, the status after the times of the parts. */
const PROXY_CLIENT = /([\d.a-fA-F:]{3,45}):(\d{1,5}) \[(?=\d{1,2}\/[A-Z])/y
const PROXY_STATUS = /\] \S{1,100} \S{1,200} [\d/+-]{3,60} (\d{3}) (\d{1,15})/y

export const proxyLog: LineFormat = (text, { time }) => {
  const client = matchAt(PROXY_CLIENT, text, 0)
  if (client === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, PROXY_CLIENT.lastIndex)
  if (line.timestamp === undefined) return undefined
  line.isZoned = time.isZoned
  const status = matchAt(PROXY_STATUS, text, time.end)
  if (status !== undefined) {
    line.level = levelOfStatus(status[1] ?? '')
    line.add('status', Number(status[1]))
    line.add('bytes', Number(status[2]))
  }
  line.add('client', client[1])
  line.add('clientPort', client[2])
  line.message = text.slice(time.end + 2)
  return line
}

/** The owner of a bucket of Amazon S3, and the bucket, before the time. */
const BUCKET = /([0-9a-f]{64}) ([\w.-]{3,63}) \[(?=\d)/y

export const bucketLog: LineFormat = (text, { time }) => {
  const bucket = matchAt(BUCKET, text, 0)
  if (bucket === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, BUCKET.lastIndex)
  if (line.timestamp === undefined) return undefined
  line.isZoned = time.isZoned
  line.add('owner', bucket[1])
  line.add('bucket', bucket[2])
  line.message = text.slice(time.end + 1).trimStart()
  return line
}

export function levelOfStatus(status: string): 'error' | 'info' | 'warn' {
  if (status.startsWith('5')) return 'error'
  return status.startsWith('4') ? 'warn' : 'info'
}

/** Adds method, path and query of `GET /a?b HTTP/1.1`. Clients send other texts, too: those are only in the message. */
function readRequestLine(requestLine: string, line: LogLine): void {
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
