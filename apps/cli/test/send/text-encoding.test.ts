import { expect, test } from 'vitest'
import { toUtf8 } from '../../src/send/text-encoding.ts'

const TEXT = 'Käse\r\n🧀 second line\n'
const little = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(TEXT, 'utf16le')])
const big = Buffer.from(little).swap16()

async function decode(bytes: Buffer, pieceBytes: number): Promise<Buffer> {
  async function* pieces(): AsyncGenerator<Buffer> {
    for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes)
  }
  const decoded: Buffer[] = []
  for await (const piece of toUtf8(pieces())) decoded.push(piece)
  return Buffer.concat(decoded)
}

test.each([1, 3, 1_000])(
  'UTF-16 with a byte order mark becomes UTF-8, in pieces of %i bytes',
  async (bytes) => {
    expect((await decode(little, bytes)).toString()).toBe(TEXT)
    expect((await decode(big, bytes)).toString()).toBe(TEXT)
  },
)

test.each([
  ['UTF-8', Buffer.from(TEXT)],
  ['Latin-1', Buffer.from(TEXT, 'latin1')],
  ['one byte of a mark', Buffer.from([0xff])],
  ['nothing', Buffer.alloc(0)],
])('%s is not changed', async (_name, bytes) => {
  expect(await decode(bytes, 1)).toEqual(bytes)
})

test('half a character at the end is replaced', async () => {
  expect((await decode(little.subarray(0, 5), 2)).toString()).toBe('K\uFFFD')
})
