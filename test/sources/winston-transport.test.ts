import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

interface SentEntry {
  readonly message: unknown
  readonly metadata: unknown
}
interface TransportClass {
  new (options: { client: { send: (entry: SentEntry) => void } }): {
    log: (info: object, done: () => void) => void
  }
}

// JavaScript that resolves winston from the folder of the example.
const path = fileURLToPath(new URL('../../examples/winston/sluice-transport.js', import.meta.url))
const { SluiceTransport } = (await import(path)) as { SluiceTransport: TransportClass }

const circle: Record<string, unknown> = {}
circle['self'] = circle

it.each<[string, object, string]>([
  ['a BigInt in an object as the message', { message: { count: 1n } }, '{"count":"1"}'],
  ['a BigInt without a message', { count: 1n }, '{"count":"1"}'],
  ['a BigInt in the metadata', { message: 'm', count: 1n }, 'm'],
  ['a circle as the message', { message: circle }, 'a message that JSON cannot hold'],
  ['a function as the message', { message: String }, String(String)],
])('the transport for winston does not throw because of %s', (_name, info, message) => {
  const sent: SentEntry[] = []
  const transport = new SluiceTransport({ client: { send: (entry) => sent.push(entry) } })
  let isDone = false
  transport.log({ level: 'info', ...info }, () => {
    isDone = true
  })
  expect(isDone).toBe(true)
  expect(sent).toMatchObject([{ message }])
})

it.each([
  ['2026-11-23T14:30:00.123Z', { timestamp: '2026-11-23T14:30:00.123Z', metadata: {} }],
  ['2026-11-23T14:30:00+01:00', { timestamp: '2026-11-23T14:30:00+01:00', metadata: {} }],
  ['2026-11-23 14:30:00', { metadata: { timestamp: '2026-11-23 14:30:00' } }],
])('the transport for winston sends the time %s so that the API accepts the entry', (timestamp, expected) => {
  const sent: string[] = []
  const transport = new SluiceTransport({ client: { send: (entry) => sent.push(JSON.stringify(entry)) } })
  transport.log({ level: 'info', message: 'm', timestamp }, () => undefined)
  expect(sent.map((json) => JSON.parse(json) as unknown)).toEqual([
    { level: 'info', message: 'm', ...expected },
  ])
})
