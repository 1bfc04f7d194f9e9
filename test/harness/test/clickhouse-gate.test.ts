import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClickHouseGate } from '../src/clickhouse-gate.ts'
import { HttpServer } from '../src/http-server.ts'
import { eventually } from '../src/waiting.ts'

const INSERT = '/?query=INSERT+INTO+logs+(id)+FORMAT+TabSeparated'

let target: HttpServer
let gate: ClickHouseGate
let received: string[]

beforeEach(async () => {
  received = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    received.push(`${request.headers.authorization ?? 'no password'} ${await text(request)}`)
    response.setHeader('x-clickhouse-summary', '{"written_rows":"3"}')
    response.end('answer')
  }
  target = new HttpServer((request, response) => void answer(request, response))
  await target.listen()
  gate = await ClickHouseGate.open(target.url)
})

afterEach(async () => {
  await gate.close()
  await target.close()
})

async function post(path: string, body: string, signal?: AbortSignal): Promise<string> {
  const headers = { authorization: 'password', connection: 'close' }
  const response = await fetch(`${gate.url}${path}`, {
    method: 'POST',
    headers,
    body,
    ...(signal && { signal }),
  })
  return response.text()
}

describe('a gate in front of ClickHouse', () => {
  it('forwards everything, and counts only inserts of rows', async () => {
    expect(await post('/?query=SELECT+1', 'question')).toBe('answer')
    expect(await post(INSERT, '')).toBe('answer')
    expect(gate.acknowledged).toEqual([])
    expect(await post(INSERT, 'rows')).toBe('answer')
    expect(gate.acknowledged).toEqual([{ rows: 3, atMs: expect.any(Number) }])
    expect(received).toEqual(['password question', 'password ', 'password rows'])
  })

  it('withholds the password', async () => {
    gate.withholdsPassword = true
    await post(INSERT, 'rows')
    expect(received).toEqual(['no password rows'])
  })

  it('forwards a delayed insert although its client is gone', async () => {
    gate.insertDelayMs = 200
    const client = new AbortController()
    const posting = post(INSERT, 'rows', client.signal).catch(() => 'no answer')
    await eventually(async () => expect(gate.delayedInserts).toBe(1))
    expect(received).toEqual([])
    client.abort()
    expect(await posting).toBe('no answer')
    await eventually(async () => expect(received).toEqual(['password rows']))
    expect(gate.delayedInserts).toBe(0)
  })
})
