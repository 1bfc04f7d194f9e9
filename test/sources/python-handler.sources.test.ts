import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { isInstalled } from './programs.ts'
import { runProgram } from './run-program.ts'

const RUN_DEADLINE_MS = 30_000
const ACCEPTED = '{"success":true,"accepted":1,"rejected":0}'

const response = (status: string, body: string, headers = ''): string =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n${headers}\r\n${body}`
const accepted = response('202 Accepted', ACCEPTED)
const incomplete = 'HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\n{"succ'

describe.skipIf(!isInstalled('python3'))('the handler for Python, if the PATH has python3', () => {
  let server: Server
  let answers: string[] = []
  const requests: { readonly atMs: number; readonly body: string }[] = []
  beforeEach(async () => {
    requests.length = 0
    server = createServer((socket) => readRequest(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(async () => {
    server.close()
    await once(server, 'close')
  })

  /** Sends the next answer when the whole request was received, and closes the connection. */
  function readRequest(socket: Socket): void {
    let text = ''
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      const [head = '', body = ''] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
      if (body.length < length) return
      requests.push({ atMs: performance.now(), body })
      socket.end(answers.shift() ?? accepted)
    })
    socket.on('error', () => undefined)
  }

  function logOneLine(values = "'one'"): Promise<{ code: number | null; output: string }> {
    const program = `
import logging, sys, time
sys.path.insert(0, ${JSON.stringify(examplePath('python-logging'))})
from sluice_handler import SluiceHandler
handler = SluiceHandler('http://127.0.0.1:${(server.address() as AddressInfo).port}', 'key', 'service')
log = logging.getLogger('a')
log.addHandler(handler)
log.setLevel(logging.INFO)
log.info(${values})
time.sleep(3.5)
`
    const environment = { PYTHONDONTWRITEBYTECODE: '1' }
    return runProgram(['python3', '-c', program], environment, { deadlineMs: RUN_DEADLINE_MS })
  }

  it.each([
    ['is incomplete', incomplete],
    ['is not HTTP', 'hello\r\n\r\n'],
    ['is empty', ''],
    ['is a list', response('202 Accepted', '[]')],
    ['is an incomplete error', 'HTTP/1.1 503 Unavailable\r\nContent-Length: 1000\r\n\r\n{"ti'],
  ])('sends the same request again if the answer %s', async (_name, answer) => {
    answers = [answer]
    const { code, output } = await logOneLine()
    expect({ code, output }).toEqual({ code: 0, output: '' })
    expect(requests).toHaveLength(2)
    expect(requests[1]?.body).toBe(requests[0]?.body)
  })

  it.each([
    ['seconds', () => '2'],
    ['a date', () => new Date(Date.now() + 3_500).toUTCString()],
  ])('waits as long as Retry-After asks for, in %s', async (_name, retryAfter) => {
    answers = [response('503 Unavailable', '', `Retry-After: ${retryAfter()}\r\n`)]
    const { code, output } = await logOneLine()
    expect({ code, output }).toEqual({ code: 0, output: '' })
    const [first = { atMs: 0 }, second = { atMs: 0 }] = requests
    // The date has whole seconds, and was made before the program started.
    expect(second.atMs - first.atMs).toBeGreaterThan(900)
  })

  it('does not follow a redirect, which would tell the key to another server', async () => {
    const { port } = server.address() as AddressInfo
    answers = [response('302 Found', '', `Location: http://localhost:${port}/elsewhere\r\n`)]
    const { code, output } = await logOneLine()
    expect({ code, output }).toEqual({
      code: 0,
      output: 'sluice: a request was rejected: 302 \nsluice: 1 records were not sent\n',
    })
    expect(requests).toHaveLength(1)
  })

  it('counts a record that cannot be formatted', async () => {
    const { code, output } = await logOneLine("'%d', 'not a number'")
    expect(code).toBe(0)
    expect(output).toContain('sluice: 1 records were not sent')
    expect(requests).toEqual([])
  })

  it('does not wait for what Retry-After asks for when the program ends before', async () => {
    answers = [response('503 Unavailable', '', 'Retry-After: 3600\r\n')]
    const { code, output } = await logOneLine()
    expect({ code, output }).toEqual({ code: 0, output: 'sluice: 1 records were not sent\n' })
    expect(requests).toHaveLength(1)
  })
})
