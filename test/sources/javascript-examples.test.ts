import { beforeEach, expect, it, vi } from 'vitest'
import { examplePath } from './programs.ts'

interface SentEntry {
  readonly message: unknown
  readonly metadata: unknown
}
interface Client {
  readonly send: (entry: SentEntry) => void
}
interface TransportClass {
  new (options: { client: Client }): { log: (info: object, done: () => void) => void }
}

// JavaScript without declarations. The winston example resolves its imports from its own folder.
const { sendConsole } = (await import(examplePath('console/send-console.js'))) as {
  sendConsole: (client: Client) => () => void
}
const { SluiceTransport } = (await import(examplePath('winston/sluice-transport.js'))) as {
  SluiceTransport: TransportClass
}

let sent: SentEntry[]
const client: Client = { send: (entry) => sent.push(entry) }

beforeEach(() => {
  sent = []
})

const revoked = Proxy.revocable({}, {})
revoked.revoke()
const error = new Error('no')
Object.defineProperty(error, 'stack', {
  get: () => {
    throw new Error('getter')
  },
})

it.each<[string, unknown]>([
  ['a proxy that was revoked', revoked.proxy],
  ['an error whose stack cannot be read', error],
])('printing %s does not throw, and what is printed later is sent', (_name, value) => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  const end = sendConsole(client)
  // oxlint-disable-next-line no-console -- what is tested
  console.log('value:', value)
  // oxlint-disable-next-line no-console -- what is tested
  console.log('later')
  end()
  expect(sent).toMatchObject([{ message: 'values that cannot be read' }, { message: 'later' }])
})

const circle: Record<string, unknown> = {}
circle['self'] = circle

it.each<[string, object, string]>([
  ['a BigInt in an object', { count: 1n }, '{ count: 1n }'],
  ['a circle', circle, '<ref *1> { self: [Circular *1] }'],
])('the transport for winston does not throw because of %s as the message', (_name, message, sentMessage) => {
  const done = vi.fn<() => void>()
  new SluiceTransport({ client }).log({ level: 'info', message }, done)
  expect(done).toHaveBeenCalled()
  expect(sent).toMatchObject([{ message: sentMessage }])
})
