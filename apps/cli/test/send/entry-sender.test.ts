import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { zstdDecompressSync } from 'node:zlib'
import { HttpServer } from '@sluice/harness/http-server'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { EntrySender, type OutgoingEntry } from '../../src/send/entry-sender.ts'
import { Tally } from '../../src/send/tally.ts'

/** A request that waits for its response. */
interface HeldRequest {
  readonly messages: readonly string[]
  readonly respond: (status: number, body: object, headers?: Readonly<Record<string, string>>) => void
  readonly accept: () => void
}

/** The requests in the order of their arrival. */
let requests: HeldRequest[] = []
let server: HttpServer
beforeEach(async () => {
  requests = []
  server = new HttpServer((request, response) => {
    void buffer(request).then((bytes) => {
      const body = request.headers['content-encoding'] === 'zstd' ? zstdDecompressSync(bytes) : bytes
      return requests.push(hold(body.toString(), response))
    })
  })
  await server.listen()
})
afterEach(() => server.close())

function hold(body: string, response: ServerResponse): HeldRequest {
  const { logs } = JSON.parse(body) as { logs: { message: string }[] }
  const respond: HeldRequest['respond'] = (status, answer, headers = {}) =>
    void response.writeHead(status, headers).end(JSON.stringify(answer))
  return {
    messages: logs.map(({ message }) => message),
    respond,
    accept: () => respond(202, { success: true, accepted: logs.length, rejected: 0 }),
  }
}

function outgoing(index: number, size = 0): OutgoingEntry {
  const entry = JSON.stringify({ level: 'info', message: String(index), text: 'x'.repeat(size) })
  return { entry, bytes: entry.length, origin: `file:${index}`, firstLine: index + 1, lastLine: index + 1 }
}

function setup(retryForMs = 60_000) {
  const notes: string[] = []
  const pauses: string[] = []
  const tally = new Tally((text) => notes.push(text))
  const interrupted = new AbortController()
  const sender = new EntrySender(
    {
      api: { url: `${server.url}/v1/logs`, key: 'slk_test' },
      retryForMs,
      interrupted: interrupted.signal,
      nowMs: Date.now,
      random: () => 0.5,
      onPause: (reason) => pauses.push(reason),
    },
    tally,
  )
  let index = 0
  const add = async (count: number, size = 0): Promise<void> => {
    for (let i = 0; i < count; i += 1) await sender.add(outgoing((index += 1), size))
  }
  return { sender, tally, notes, pauses, interrupted, add }
}

const arrived = (count: number): Promise<void> =>
  vi.waitFor(() => expect(requests.length).toBeGreaterThanOrEqual(count), { timeout: 5_000, interval: 5 })

describe('after a request failed permanently', () => {
  test('nothing more is sent, requests in flight are awaited, and every entry is counted', async () => {
    const { sender, tally, notes, add } = setup()
    await add(250)
    await arrived(2)
    // They are sent at once, so either may arrive first.
    const requestFrom = (message: string) => requests.find(({ messages }) => messages[0] === message)
    requestFrom('1')?.respond(401, { title: 'Unauthorized', detail: 'The key is unknown.' })
    await vi.waitFor(() => expect(sender.failed.aborted).toBe(true))
    await add(1)
    const ended = sender.end()
    await sleep(50)
    const errors = [{ index: 7, path: '/level', code: 'missing', message: 'level is required' }]
    requestFrom('101')?.respond(202, { success: true, accepted: 99, rejected: 1, errors })
    await expect(ended).rejects.toThrow(
      `the API at ${server.url}/v1/logs rejected the request: the API key is missing, malformed, unknown, expired or revoked (401); set SLUICE_API_KEY or pass --api-key`,
    )
    expect(requests).toHaveLength(2)
    expect(tally).toMatchObject({ answered: 100, accepted: 99, rejected: 1, unanswered: 151 })
    expect(notes).toEqual(['file:108: /level level is required'])
  })

  test.each([
    [400, { detail: 'The body is not an object.' }, 'The body is not an object (400)'],
    [413, { detail: 'The body is too large.' }, 'The body is too large (413)'],
    [422, { detail: 'The key was used.' }, 'The key was used (422)'],
    [301, {}, 'the response is not from a Sluice API (301)'],
    [200, { accepted: 1 }, 'the response is not from a Sluice API (200)'],
    [401, {}, 'the response is not from a Sluice API (401)'],
  ])('%i: the reason is shown, and its entry counts as unanswered', async (status, body, reason) => {
    const { sender, tally, notes, add } = setup()
    await add(1)
    const ended = sender.end()
    await arrived(1)
    requests[0]?.respond(status, body)
    await expect(ended).rejects.toThrow(new RegExp(`rejected the request: ${escape(reason)}$`))
    expect(tally).toMatchObject({ answered: 0, rejected: 0, unanswered: 1 })
    expect(notes).toEqual([])
  })
})

const escape = (text: string): string => text.replaceAll(/[()]/g, String.raw`\$&`)

describe('an interrupt', () => {
  test('ends a pause', async () => {
    const { sender, tally, pauses, interrupted, add } = setup()
    await add(1)
    const ended = sender.end()
    await arrived(1)
    requests[0]?.respond(429, {}, { 'retry-after': '30' })
    await vi.waitFor(() => expect(pauses).toHaveLength(1))
    interrupted.abort()
    await expect(ended).rejects.toThrow('interrupted while waiting to retry')
    expect(tally.unanswered).toBe(1)
  })

  test('lets requests in flight end, and is noticed by the next failure', async () => {
    const { sender, tally, interrupted, add } = setup()
    await add(200)
    await arrived(2)
    interrupted.abort()
    const ended = sender.end()
    requests[0]?.accept()
    await sleep(50)
    requests[1]?.respond(503, {})
    await expect(ended).rejects.toThrow('interrupted while waiting to retry')
    expect(tally).toMatchObject({ accepted: 100, unanswered: 100 })
  })
})
