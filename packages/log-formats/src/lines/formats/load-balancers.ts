import { addStatus, readRequestLine } from './access-log.ts'
import { type LineFormat, matchAt } from './format.ts'
import { lineWithTime, type LogLine } from './log-line.ts'

/** HAProxy without syslog: client and port before the time, the status after the times of the parts. */
const PROXY_CLIENT = /([\d.a-fA-F:]{3,45}):(\d{1,5}) \[(?=\d{1,2}\/[A-Z])/y
const PROXY_STATUS = /\] \S{1,100} \S{1,200} [\d/+-]{3,60} (\d{3}) (\d{1,15})/y

export const proxyLog: LineFormat = (text, { time }) => {
  const client = matchAt(PROXY_CLIENT, text, 0)
  if (client === undefined) return undefined
  const line = lineWithTime(text, PROXY_CLIENT.lastIndex, time)
  if (line === undefined) return undefined
  readProxyStatus(text, time.end, line)
  line.add('client', client[1])
  line.add('clientPort', client[2])
  line.message = text.slice(time.end + 2)
  return line
}

function readProxyStatus(text: string, at: number, line: LogLine): void {
  const status = matchAt(PROXY_STATUS, text, at)
  if (status === undefined) return
  addStatus(status[1], line)
  line.add('bytes', Number(status[2]))
}

/** The line of HAProxy as the message of syslog, which stays as it is. */
export function readProxyMessage(line: LogLine): void {
  const { message } = line
  if (matchAt(PROXY_CLIENT, message, 0) === undefined) return
  readProxyStatus(message, message.indexOf(']', PROXY_CLIENT.lastIndex), line)
}

/** The owner of a bucket of Amazon S3, and the bucket, before the time. */
const BUCKET = /([0-9a-f]{64}) ([\w.-]{3,63}) \[(?=\d)/y
/** The request line and its status. */
const BUCKET_STATUS = /"(?:[^"\\]|\\.)*" (\d{3})(?= )/y

export const bucketLog: LineFormat = (text, { time }) => {
  const bucket = matchAt(BUCKET, text, 0)
  if (bucket === undefined) return undefined
  const line = lineWithTime(text, BUCKET.lastIndex, time)
  if (line === undefined) return undefined
  line.add('owner', bucket[1])
  line.add('bucket', bucket[2])
  addStatus(matchAt(BUCKET_STATUS, text, text.indexOf('"', time.end))?.[1], line)
  line.message = text.slice(time.end + 1).trimStart()
  return line
}

/** Load balancers of AWS: protocol, time, name, client, target, three durations, status of the balancer and of the target. */
const BALANCER = /(https?|h2|grpcs?|wss?) (?=\d{4}-)/y
const BALANCER_FIELDS =
  / (\S{1,200}) ([\d.a-fA-F:[\]]{3,47}):(\d{1,5}) (\S{1,60})(?: -?[\d.]{1,12}){3} (\d{3}|-) (?:\d{3}|-) \d{1,15} (\d{1,15}) "([^"\\]{1,8000})"/y

export const balancerLog: LineFormat = (text, { time }) => {
  const balancer = matchAt(BALANCER, text, 0)
  if (balancer === undefined) return undefined
  const line = lineWithTime(text, BALANCER.lastIndex, time)
  if (line === undefined) return undefined
  const fields = matchAt(BALANCER_FIELDS, text, time.end)
  if (fields === undefined) return undefined
  const [, name, client, port, , status = '-', bytes, requestLine = ''] = fields
  line.add('scheme', balancer[1])
  line.add('balancer', name)
  line.add('client', client)
  line.add('clientPort', port)
  addStatus(status === '-' ? undefined : status, line)
  line.add('bytes', Number(bytes))
  readRequestLine(requestLine, line)
  line.message = text.slice(time.end + 1)
  return line
}

/** Squid: duration, client, result and status after the time. */
const SQUID = /\s{1,10}\d{1,10} \S{1,100} [A-Z][A-Z_]{2,40}\/(\d{3}) \d{1,15} [A-Z]{3,10} /y

export function readSquid(text: string, at: number, line: LogLine): boolean {
  // Its times are seconds since 1970 with milliseconds.
  if (text.charAt(10) !== '.' || at !== 14) return false
  const match = matchAt(SQUID, text, at)
  if (match === undefined) return false
  addStatus(match[1] === '000' ? undefined : match[1], line)
  line.message = text.slice(at).trimStart()
  return true
}
