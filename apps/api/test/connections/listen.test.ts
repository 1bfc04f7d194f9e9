import { entryText, HttpConnection, postText } from '@sluice/harness'
import { canSharePorts } from '@sluice/runtime'
import { expect, it, onTestFinished } from 'vitest'
import { readApiConfig } from '../../src/config.ts'
import { listen } from '../../src/connections/listen.ts'
import { freshTestApi } from '../support/shared-api.ts'

const api = freshTestApi()

async function listening() {
  const opened = await listen(api.app, '127.0.0.1', 0, false)
  onTestFinished(opened.close)
  return { ...opened, port: Number(new URL(opened.url).port) }
}

async function connect(port: number, count: number): Promise<HttpConnection[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => HttpConnection.open(port)))
  onTestFinished(() => connections.forEach((connection) => connection.destroy()))
  return connections
}

it.runIf(canSharePorts)('several connections are accepted in one turn of the event loop', async () => {
  const { port } = await listening()
  let turn = 0
  const accepted: number[] = []
  api.app.server.on('connection', () => (accepted[turn] = (accepted[turn] ?? 0) + 1))
  let isOver = false
  const nextTurn = (): void => {
    turn += 1
    if (!isOver) setImmediate(nextTurn)
  }
  nextTurn()
  await connect(port, 100)
  isOver = true
  expect(Object.values(accepted).some((count) => count > 1)).toBe(true)
})

it('a close ends the idle connections of all sockets, and answers their requests in flight', async () => {
  const { port, close } = await listening()
  const [idle, busy] = [await connect(port, 50), await connect(port, 50)]
  api.queue.holding = true
  let requests = 0
  api.app.server.on('request', () => (requests += 1))
  for (const connection of busy) connection.write(postText(api.key, entryText))
  await expect.poll(() => requests).toBe(busy.length)
  const closed = close()
  await expect.poll(() => idle.every(({ isEnded }) => isEnded)).toBe(true)
  await expect(HttpConnection.open(port)).rejects.toThrow('ECONNREFUSED')
  api.queue.holding = false
  for (const { confirm } of api.queue.adds) confirm()
  await closed
  await expect.poll(() => busy.every(({ isEnded }) => isEnded)).toBe(true)
  expect(busy.map(({ responses }) => responses.map(({ status }) => status))).toEqual(busy.map(() => [202]))
})

it('several processes on one port are rejected where the system has none', () => {
  expect(() => readApiConfig({ API_PROCESSES: '2' }, false)).toThrow('API_PROCESSES above 1 needs Linux')
  expect(readApiConfig({}, false).API_PROCESSES).toBe(1)
})
