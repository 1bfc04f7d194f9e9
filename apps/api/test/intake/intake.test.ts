import { rowAsJson } from '@sluice/rows'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it, vi } from 'vitest'
import { Intake } from '../../src/intake/intake.ts'
import { stamp, textOf } from '../support/intake.ts'
import { freshTestApi } from '../support/shared-api.ts'

it('adds to each row the project, retention and time of its request', () => {
  const intake = new Intake(Date.now)
  const body = Buffer.from('{"level":"info","message":"m"}')
  const plus = { ...stamp, receivedAtMs: stamp.receivedAtMs + 1 }
  for (const [each, project, expires, received] of [
    [stamp, 'demo', '2026-12-21', '2026-11-20 00:00:00.000'],
    [{ ...stamp, projectId: 'other' }, 'other', '2026-12-21', '2026-11-20 00:00:00.000'],
    [{ ...stamp, retentionDays: 1 }, 'demo', '2026-11-22', '2026-11-20 00:00:00.000'],
    [plus, 'demo', '2026-12-21', '2026-11-20 00:00:00.001'],
    [stamp, 'demo', '2026-12-21', '2026-11-20 00:00:00.000'],
  ] as const) {
    const line = intake.readEntries(body, each, false, ({ rows }) => ({ text: textOf(rows) }))?.text ?? ''
    const row = { project_id: project, expires_on: expires, received_at: received }
    expect(JSON.parse(rowAsJson(line) ?? '')).toMatchObject(row)
  }
})

describe('each of several concurrent requests stores its own rows', () => {
  const api = freshTestApi()
  // Of the same length and of others: each body overwrites the rows of the one before in the scanner's memory.
  const messages = ['one', 'two', 'longer than the others', '4']
  const ENTRIES = 20

  const send = (message: string, key?: string): Promise<LightMyRequestResponse> => {
    const entries = Array.from({ length: ENTRIES }, () => ({ level: 'info', message }))
    return api.post(entries, { headers: { 'idempotency-key': key } })
  }

  /** Sends the messages, and calls `release` when all bodies are scanned. */
  async function expectStored(keyOf: (number: number) => string | undefined, release: () => void) {
    const scan = vi.spyOn(Intake.prototype, 'readEntries')
    const requests = messages.map((message, i) => send(message, keyOf(i)))
    await vi.waitUntil(() => scan.mock.calls.length === messages.length, { interval: 1 })
    release()
    expect((await Promise.all(requests)).map(({ statusCode }) => statusCode)).toEqual([202, 202, 202, 202])
    const stored = Object.groupBy(api.queue.rows, ({ message = '' }) => message)
    expect(messages.map((message) => stored[message]?.length)).toEqual(messages.map(() => ENTRIES))
  }

  it('while they wait for a commit of idempotency keys', async () => {
    api.queue.holding = true
    const inFlight = send('in flight', 'in-flight')
    await vi.waitUntil(() => api.queue.adds.length === 1)
    const release = (): void => {
      expect(api.queue.adds).toHaveLength(1)
      api.queue.holding = false
      api.queue.adds[0]?.confirm()
    }
    await expectStored((i) => `key-${i}`, release)
    expect((await inFlight).statusCode).toBe(202)
  })

  it.each([undefined, 'key'])('while they wait for a rate-limit lease, with the key %s', async (key) => {
    // They pay for their bytes, and wait for the lease of their entries. On a slow machine, the process counts on its own before.
    api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
    api.buckets.level = { entries: 200, bytes: 0 }
    const lease = Promise.withResolvers<void>()
    api.buckets.beforeAnswer = () => (api.buckets.requests.length === 1 ? Promise.resolve() : lease.promise)
    await expectStored((i) => key && `${key}-${i}`, lease.resolve)
  })
})
