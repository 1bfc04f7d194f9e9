import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readBody } from '../../src/intake/read-body.ts'

const held = { hold: () => undefined, check: () => undefined, release: () => undefined } as never

test.each([
  { arrived: ['one ', 'two ', 'three'], later: [] },
  { arrived: ['one '], later: ['two ', 'three'] },
  { arrived: [], later: ['one two ', 'three'] },
])('a body that has arrived in $arrived and arrives in $later is read whole', async ({ arrived, later }) => {
  const message = new IncomingMessage(new Socket())
  message.headers['content-length'] = '13'
  for (const part of arrived) message.push(Buffer.from(part))
  if (later.length === 0) message.push(null)
  const body = readBody(message, held)
  for (const part of later) {
    await setImmediate()
    message.push(Buffer.from(part))
  }
  message.push(null)
  expect(String(await body)).toBe('one two three')
})
