import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support.ts'
import { Link } from './link.ts'
import { pause } from './pause.ts'

/** What a socket has received, and how it ended. */
class Ear {
  text = ''
  ended = false
  error: string | undefined
  closed = false

  constructor(socket: Socket) {
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      this.text += text
    })
    socket.on('end', () => {
      this.ended = true
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.error = error.code
    })
    socket.on('close', () => {
      this.closed = true
    })
  }
}

let server: Server
let link: Link
let client: Socket
let target: Socket
let clientHears: Ear
let targetHears: Ear

beforeEach(async () => {
  server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  link = await Link.open('a>b', (server.address() as AddressInfo).port)
  const accepted = once(server, 'connection')
  client = connect(link.port, '127.0.0.1')
  target = ((await accepted) as [Socket])[0]
  clientHears = new Ear(client)
  targetHears = new Ear(target)
})

afterEach(async () => {
  client.destroy()
  target.destroy()
  await link.close()
  server.close()
  await once(server, 'close')
})

it('forwards bytes and ends in both directions', async () => {
  client.write('question')
  await eventually(1_000, async () => expect(targetHears.text).toBe('question'))
  target.end('answer')
  await eventually(1_000, async () => expect(clientHears).toMatchObject({ text: 'answer', ended: true }))
  await eventually(1_000, async () => expect(targetHears).toMatchObject({ closed: true, error: undefined }))
})

it('resets every connection', async () => {
  expect(link.reset()).toBe(1)
  await eventually(1_000, async () => {
    expect(clientHears.error).toBe('ECONNRESET')
    expect(targetHears.error).toBe('ECONNRESET')
  })
})

describe('a black hole', () => {
  it('takes bytes and forwards none until it resumes', async () => {
    link.hold('request')
    client.write('question')
    await eventually(1_000, async () => expect(link.heldBytes('request')).toBe(8))
    target.write('unasked')
    await eventually(1_000, async () => expect(clientHears.text).toBe('unasked'))
    expect(targetHears.text).toBe('')
    link.resume()
    await eventually(1_000, async () => expect(targetHears.text).toBe('question'))
  })

  it('hides the end of a connection until it resumes', async () => {
    link.hold('answer')
    target.write('last words')
    target.resetAndDestroy()
    await pause(100)
    expect(clientHears).toMatchObject({ text: '', closed: false })
    link.resume()
    await eventually(1_000, async () => expect(clientHears.closed).toBe(true))
  })
})

describe('a cut', () => {
  it('ends a request after so many bytes, which arrive', async () => {
    link.armCut({ direction: 'request', afterBytes: 5 })
    client.write('abc')
    client.write('defg')
    await eventually(1_000, async () => {
      expect(targetHears).toMatchObject({ text: 'abcde', ended: true, error: undefined })
      expect(clientHears.error).toBe('ECONNRESET')
    })
    expect(link.cuts).toBe(1)
  })

  it('ends an answer after so many bytes, and leaves requests alone', async () => {
    link.armCut({ direction: 'answer', afterBytes: 2 })
    client.write('question')
    await eventually(1_000, async () => expect(targetHears.text).toBe('question'))
    target.write('answer')
    await eventually(1_000, async () => expect(clientHears).toMatchObject({ text: 'an', ended: true }))
  })

  it('counts from when it is armed, and not once it is disarmed', async () => {
    client.write('before')
    await eventually(1_000, async () => expect(targetHears.text).toBe('before'))
    link.armCut({ direction: 'request', afterBytes: 5 })
    client.write('1234')
    await eventually(1_000, async () => expect(targetHears.text).toBe('before1234'))
    link.disarmCut()
    client.write('56')
    await eventually(1_000, async () => expect(targetHears.text).toBe('before123456'))
    expect(link.cuts).toBe(0)
  })
})
