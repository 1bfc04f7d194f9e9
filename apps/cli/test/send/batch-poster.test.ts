import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { BatchPoster } from '../../src/send/batch-poster.ts'

const ACCEPTED = '{"success":true,"accepted":1,"rejected":0}'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A poster, and a server that gives the answers in turn. */
async function setup(answers: ((response: ServerResponse) => void)[]) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => answers.shift()?.(response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const pauses: string[] = []
  const poster = new BatchPoster({
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

describe('an attempt has a deadline', () => {
  test('when there is no answer', async () => {
    const { poster, pauses } = await setup([() => undefined, accept])
    expect(await poster.post(['{}'])).toMatchObject({ accepted: 1 })
    expect(pauses).toEqual(['the API did not answer in time'])
  })

  test('when the answer does not end', async () => {
    const { poster, pauses } = await setup([(response) => response.writeHead(202).write('{'), accept])
    expect(await poster.post(['{}'])).toMatchObject({ accepted: 1 })
    expect(pauses).toEqual(['the API did not answer in time'])
  })
})

test('an answer without end or measure is cut, and is not from the API', async () => {
  const { poster } = await setup([
    (response) => response.writeHead(202).end(' '.repeat(2_000_000) + ACCEPTED),
  ])
  await expect(poster.post(['{}'])).rejects.toThrow('is this a Sluice API?')
})

test('a redirect is not followed: it would turn the sending into a reading', async () => {
  const { poster } = await setup([
    (response) => response.writeHead(301, { location: 'https://elsewhere' }).end(),
  ])
  await expect(poster.post(['{}'])).rejects.toThrow('(301)')
})
