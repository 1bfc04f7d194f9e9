import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { RequestPoster } from '../../src/send/request-poster.ts'

const ACCEPTED = '{"success":true,"accepted":1,"rejected":0}'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A poster, and a server that sends the given responses in turn. */
async function setup(responses: ((response: ServerResponse) => void)[]) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => responses.shift()?.(response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const pauses: string[] = []
  const poster = new RequestPoster({
    api: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/logs`, key: 'slk_test' },
    retryForMs: 2_000,
    requestTimeoutMs: 200,
    signal: new AbortController().signal,
    nowMs: Date.now,
    random: () => 0.9,
    onPause: (reason) => pauses.push(reason),
  })
  return { poster, pauses }
}

const accept = (response: ServerResponse): void => void response.writeHead(202).end(ACCEPTED)

describe('an attempt is limited in time', () => {
  test('when there is no response', async () => {
    const { poster, pauses } = await setup([() => undefined, accept])
    expect(await poster.post(['{}'])).toMatchObject({ accepted: 1 })
    expect(pauses).toEqual(['the API did not respond in time'])
  })

  test('when the response does not end', async () => {
    const { poster, pauses } = await setup([(response) => response.writeHead(202).write('{'), accept])
    expect(await poster.post(['{}'])).toMatchObject({ accepted: 1 })
    expect(pauses).toEqual(['the API did not respond in time'])
  })
})

test('an oversized response is cut off and rejected as not from the API', async () => {
  const { poster } = await setup([
    (response) => response.writeHead(202).end(' '.repeat(2_000_000) + ACCEPTED),
  ])
  await expect(poster.post(['{}'])).rejects.toThrow('is this a Sluice API?')
})

test('a redirect is not followed: it would turn the POST into a GET', async () => {
  const { poster } = await setup([
    (response) => response.writeHead(301, { location: 'https://elsewhere' }).end(),
  ])
  await expect(poster.post(['{}'])).rejects.toThrow('(301)')
})
