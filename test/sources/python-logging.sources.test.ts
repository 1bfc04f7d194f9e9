import { eventually } from '@sluice/harness'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LosingProxy } from './losing-proxy.ts'
import {
  type Command,
  examplePath,
  isInstalled,
  type ProgramRun,
  runProgram,
  startProgram,
} from './programs.ts'
import { Sources } from './sources.ts'

/** Enough for several requests. */
const RECORDS = 2_500
/** What the example sends besides. */
const OWN = 4

const main = examplePath('python-logging/main.py')
const python = (...args: string[]): Command => ['python3', ...args]
const noCache = { PYTHONDONTWRITEBYTECODE: '1' }

describe.skipIf(!isInstalled('python3'))('the example with Python, if the PATH has python3', () => {
  const sources = Sources.use()
  const environment = (service: string) => ({ ...sources.environment(service), ...noCache })

  it('sends level, message, time, logger, extra values and stack', async () => {
    const service = 'python-fields'
    const { code, output } = await runProgram(python(main), environment(service))
    expect({ code, output }).toMatchObject({ code: 0 })
    expect(output).not.toContain('sluice:')
    const [connecting, order, slow, failed] = await sources.entriesOf(service, OWN)
    expect(connecting).toMatchObject({ level: 'debug', message: 'Connecting', environment: 'production' })
    expect(order).toMatchObject({
      level: 'info',
      message: 'Order 4711 accepted',
      source: 'server',
      metadata: {
        logger: 'checkout.payment',
        file: 'main.py',
        order: { id: 4711, total: 12.5 },
        user: 'ada',
      },
    })
    expect(slow).toMatchObject({
      level: 'warn',
      message: 'Slow answer: half a pair ?, and nan',
      metadata: { ratio: 'nan' },
    })
    expect(failed).toMatchObject({ level: 'error', message: 'Payment failed' })
    expect(failed?.stack).toContain('ZeroDivisionError: division by zero')
  })

  it('sends each record once while the API is down and up again', async () => {
    const service = 'python-down'
    await sources.killApi()
    const run = startProgram(python(main, String(RECORDS)), environment(service))
    await eventually(async () => {
      expect(run.output()).toContain(`number ${RECORDS - 1}`)
    })
    await sources.startApi()
    const { code, output } = await run.ended
    expect({ code, output: output.slice(-500) }).toMatchObject({ code: 0 })
    expect(output).not.toContain('sluice:')
    expect(await sources.entriesOf(service, RECORDS + OWN)).toHaveLength(RECORDS + OWN)
  })

  it('sends each record once although each third response is lost', async () => {
    const service = 'python-lost-responses'
    await using proxy = await LosingProxy.open(sources.installation.apiUrl, { every: 3, instead: 'close' })
    const losing = { ...environment(service), SLUICE_API_URL: proxy.url }
    const run = await runProgram(python(main, String(RECORDS)), losing)
    expect(run).toMatchObject({ code: 0 })
    expect(run.output).not.toContain('sluice:')
    expect(proxy.lost).toBeGreaterThan(5)
    expect(await sources.entriesOf(service, RECORDS + OWN)).toHaveLength(RECORDS + OWN)
  })

  it('ends, and says how many records are lost, if the API stays down', async () => {
    await sources.killApi()
    const { code, output } = await runProgram(python(main, '150'), environment('python-lost'))
    await sources.startApi()
    expect(code).toBe(0)
    expect(output).toContain('sluice: 154 records were not sent')
  })
})

const response = (status: string, body: string, headers = ''): string =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n${headers}\r\n${body}`
const accepted = response('202 Accepted', '{"success":true,"accepted":1,"rejected":0}')

describe.skipIf(!isInstalled('python3'))('the handler for Python, if the PATH has python3', () => {
  let server: Server
  let responses: string[] = []
  const requests: { readonly atMs: number; readonly body: string }[] = []
  const port = (): number => (server.address() as AddressInfo).port

  beforeEach(async () => {
    requests.length = 0
    server = createServer(readRequest)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })

  afterEach(async () => {
    server.close()
    await once(server, 'close')
  })

  /** Sends the next response when the whole request was received, and closes the connection. */
  function readRequest(socket: Socket): void {
    let received = ''
    socket.setEncoding('utf8').on('data', (piece: string) => {
      received += piece
      const [head = '', body = ''] = received.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
      if (body.length < length) return
      requests.push({ atMs: performance.now(), body })
      socket.end(responses.shift() ?? accepted)
    })
    socket.on('error', () => undefined)
  }

  function logOneLine(values = "'one'"): Promise<ProgramRun> {
    const program = `
import logging, sys, time
sys.path.insert(0, ${JSON.stringify(examplePath('python-logging'))})
from sluice_handler import SluiceHandler
handler = SluiceHandler('http://127.0.0.1:${port()}', 'key', 'service')
log = logging.getLogger('a')
log.addHandler(handler)
log.setLevel(logging.INFO)
log.info(${values})
time.sleep(3.5)
`
    return runProgram(python('-c', program), noCache)
  }

  it.each([
    ['is incomplete', 'HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\n{"succ'],
    ['is not HTTP', 'hello\r\n\r\n'],
    ['is empty', ''],
    ['is a list', response('202 Accepted', '[]')],
    ['is an incomplete error', 'HTTP/1.1 503 Unavailable\r\nContent-Length: 1000\r\n\r\n{"ti'],
  ])('sends the same request again if the response %s', async (_name, first) => {
    responses = [first]
    expect(await logOneLine()).toEqual({ code: 0, output: '' })
    expect(requests).toHaveLength(2)
    expect(requests[1]?.body).toBe(requests[0]?.body)
  })

  it.each([
    ['seconds', () => '2'],
    ['a date', () => new Date(Date.now() + 3_500).toUTCString()],
  ])('waits as long as Retry-After asks for, in %s', async (_name, retryAfter) => {
    responses = [response('503 Unavailable', '', `Retry-After: ${retryAfter()}\r\n`)]
    expect(await logOneLine()).toEqual({ code: 0, output: '' })
    const [first = { atMs: 0 }, second = { atMs: 0 }] = requests
    // The date has whole seconds, and was made before the program started.
    expect(second.atMs - first.atMs).toBeGreaterThan(900)
  })

  it('does not follow a redirect, which would send the key to another server', async () => {
    responses = [response('302 Found', '', `Location: http://localhost:${port()}/elsewhere\r\n`)]
    const output = 'sluice: a request was rejected: 302 \nsluice: 1 records were not sent\n'
    expect(await logOneLine()).toEqual({ code: 0, output })
    expect(requests).toHaveLength(1)
  })

  it('counts a record that cannot be formatted', async () => {
    const { code, output } = await logOneLine("'%d', 'not a number'")
    expect(code).toBe(0)
    expect(output).toContain('sluice: 1 records were not sent')
    expect(requests).toEqual([])
  })

  it('does not wait for what Retry-After asks for when the program ends before', async () => {
    responses = [response('503 Unavailable', '', 'Retry-After: 3600\r\n')]
    expect(await logOneLine()).toEqual({ code: 0, output: 'sluice: 1 records were not sent\n' })
    expect(requests).toHaveLength(1)
  })
})
