import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FaultProxy } from '../src/fault-proxy.ts'
import { eventually, pause } from '../src/waiting.ts'

/** Records what a socket receives, and how it closes. */
class Recorder {
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
let proxy: FaultProxy
let client: Socket
let target: Socket
let atClient: Recorder
let atTarget: Recorder

async function connectThrough(): Promise<void> {
  const accepted = once(server, 'connection')
  client = connect(proxy.port, '127.0.0.1')
  target = ((await accepted) as [Socket])[0]
  atClient = new Recorder(client)
  atTarget = new Recorder(target)
}

beforeEach(async () => {
  server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy = await FaultProxy.open(`redis://:secret@127.0.0.1:${(server.address() as AddressInfo).port}/1`)
  await connectThrough()
})

afterEach(async () => {
  client.destroy()
  target.destroy()
  await proxy.down()
  server.close()
  await once(server, 'close')
})

it('has the URL of its target, with its own port', () => {
  expect(proxy.url).toBe(`redis://:secret@127.0.0.1:${proxy.port}/1`)
})

it('forwards bytes and ends in both directions', async () => {
  client.write('question')
  await eventually(async () => expect(atTarget.text).toBe('question'))
  target.end('answer')
  await eventually(async () => expect(atClient).toMatchObject({ text: 'answer', ended: true }))
  await eventually(async () => expect(atTarget).toMatchObject({ closed: true, error: undefined }))
})

it('resets every connection', async () => {
  expect(proxy.reset()).toBe(1)
  await eventually(async () => {
    expect(atClient.error).toBe('ECONNRESET')
    expect(atTarget.error).toBe('ECONNRESET')
  })
})

describe('down', () => {
  it('resets connections and lets new ones fail, until it is up on the same port', async () => {
    const { port } = proxy
    await proxy.down()
    await proxy.down()
    await eventually(async () => expect(atClient.error).toBe('ECONNRESET'))
    await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await proxy.up()
    expect(proxy.port).toBe(port)
    await connectThrough()
    client.write('question')
    await eventually(async () => expect(atTarget.text).toBe('question'))
  })
})

describe('a black hole', () => {
  it('reads bytes and forwards none until it resumes', async () => {
    proxy.hold('request')
    client.write('question')
    await eventually(async () => expect(proxy.heldBytes('request')).toBe(8))
    target.write('unasked')
    await eventually(async () => expect(atClient.text).toBe('unasked'))
    expect(atTarget.text).toBe('')
    proxy.resume()
    await eventually(async () => expect(atTarget.text).toBe('question'))
  })

  it('hides the end of a connection until it resumes', async () => {
    proxy.hold('answer')
    target.write('last words')
    target.resetAndDestroy()
    await pause(100)
    expect(atClient).toMatchObject({ text: '', closed: false })
    proxy.resume()
    await eventually(async () => expect(atClient.closed).toBe(true))
  })
})

describe('silence', () => {
  it('stops the open connections without closing them, and new ones work', async () => {
    client.write('before')
    await eventually(async () => expect(atTarget.text).toBe('before'))
    expect(proxy.silence()).toBe(1)
    const [silent, atSilent, atSilentTarget] = [client, atClient, atTarget]
    silent.write('lost')
    target.write('lost')
    await connectThrough()
    client.write('after')
    await eventually(async () => expect(atTarget.text).toBe('after'))
    proxy.heal()
    await pause(100)
    expect([atSilent.text, atSilentTarget.text, atSilent.closed]).toEqual(['', 'before', false])
    silent.destroy()
  })
})

describe('a cut', () => {
  it('ends a request after the given bytes, which arrive', async () => {
    proxy.armCut({ direction: 'request', afterBytes: 5 })
    client.write('abc')
    client.write('defg')
    await eventually(async () => {
      expect(atTarget).toMatchObject({ text: 'abcde', ended: true, error: undefined })
      expect(atClient.error).toBe('ECONNRESET')
    })
    expect(proxy.cuts).toBe(1)
  })

  it('ends a response after the given bytes, and does not affect requests', async () => {
    proxy.armCut({ direction: 'answer', afterBytes: 2 })
    client.write('question')
    await eventually(async () => expect(atTarget.text).toBe('question'))
    target.write('answer')
    await eventually(async () => expect(atClient).toMatchObject({ text: 'an', ended: true }))
  })

  it('counts bytes from when it is armed, and none after it is disarmed', async () => {
    client.write('before')
    await eventually(async () => expect(atTarget.text).toBe('before'))
    proxy.armCut({ direction: 'request', afterBytes: 5 })
    client.write('1234')
    await eventually(async () => expect(atTarget.text).toBe('before1234'))
    proxy.disarmCut()
    client.write('56')
    await eventually(async () => expect(atTarget.text).toBe('before123456'))
    expect(proxy.cuts).toBe(0)
  })

  it('replaces the response to the first request with the given text', async () => {
    proxy.cutAnswerTo('marked')
    client.write('other')
    await eventually(async () => expect(atTarget.text).toBe('other'))
    target.write('answer')
    await eventually(async () => expect(atClient.text).toBe('answer'))
    client.write('a marked request')
    await eventually(async () => expect(atTarget.text).toBe('othera marked request'))
    target.write('never forwarded')
    await eventually(async () => expect(atClient).toMatchObject({ text: 'answer', ended: true }))
    expect(proxy.cuts).toBe(1)
    await connectThrough()
    client.write('a marked request')
    target.write('answer')
    await eventually(async () => expect(atClient.text).toBe('answer'))
  })
})
