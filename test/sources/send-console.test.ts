import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'

interface Sender {
  readonly send: (entry: { readonly message: unknown }) => void
}

// JavaScript without declarations.
const path = fileURLToPath(new URL('../../examples/console/send-console.js', import.meta.url))
const { sendConsole } = (await import(path)) as { sendConsole: (client: Sender) => () => void }

const sent: { readonly message: unknown }[] = []
let end: () => void
beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  end = sendConsole({ send: (entry) => sent.push(entry) })
})
afterEach(() => {
  end()
  vi.restoreAllMocks()
  sent.length = 0
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
  // oxlint-disable-next-line no-console -- what is tested
  console.log('value:', value)
  // oxlint-disable-next-line no-console -- what is tested
  console.log('later')
  expect(sent).toMatchObject([{ message: 'values that cannot be read' }, { message: 'later' }])
})
