import { PassThrough, Readable } from 'node:stream'
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { decompress, toUtf8 } from '../../src/send/decoding.ts'

/** A frame of zstd that is not data. */
const skippable = (kind: number): Buffer => Buffer.from([0x50 + kind, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
const withChecksum = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

const TEXT = 'first line\nsecond line\n'.repeat(50_000)

/** The output for data that arrives in pieces of `pieceBytes`. */
async function output(data: Buffer, pieceBytes = 65_536, name = 'the file'): Promise<string> {
  const pieces: Buffer[] = []
  for (let from = 0; from < data.length; from += pieceBytes)
    pieces.push(data.subarray(from, from + pieceBytes))
  const found: Buffer[] = []
  for await (const piece of decompress(Readable.from(pieces), name)) found.push(piece)
  return Buffer.concat(found).toString()
}

describe('decompress', () => {
  test.each([
    ['text', Buffer.from(TEXT)],
    ['gzip', gzipSync(TEXT)],
    ['zstd', zstdCompressSync(TEXT)],
    ['several gzip members', Buffer.concat([gzipSync(TEXT.slice(0, 1_000)), gzipSync(TEXT.slice(1_000))])],
    [
      'several zstd frames',
      Buffer.concat([zstdCompressSync(TEXT.slice(0, 9)), zstdCompressSync(TEXT.slice(9), withChecksum)]),
    ],
    [
      'zstd with frames that are not data',
      Buffer.concat([skippable(0), zstdCompressSync(TEXT, withChecksum), skippable(7), skippable(15)]),
    ],
  ])('yields the text of %s, in pieces of any size', async (_name, data) => {
    expect(await output(data)).toBe(TEXT)
    expect(await output(data, 1_000)).toBe(TEXT)
    expect(await output(data.subarray(0, 40), 1).catch(() => 'cut off')).not.toBe('')
  })

  test.each(['', '\n', 'BZh', 'BZh9 is no signature', 'PK', '(µ/ý'])(
    'does not change short text: %j',
    async (text) => {
      expect(await output(Buffer.from(text), 1)).toBe(text)
    },
  )

  test.each([
    ['xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 4])],
    ['zip', Buffer.from('PK\u0003\u0004\u0014\u0000')],
    ['bzip2', Buffer.from('BZh91AY&SY\u0001')],
  ])('rejects %s with the command that decompresses it', async (name, data) => {
    await expect(output(data)).rejects.toThrow(
      new RegExp(`^cannot read the file: it is compressed \\(${name}\\); decompress it first: .+ FILE`),
    )
  })

  test.each([
    ['gzip', gzipSync(TEXT)],
    ['zstd', zstdCompressSync(TEXT)],
  ])('reports %s that was cut off', async (_name, data) => {
    await expect(output(data.subarray(0, -9))).rejects.toThrow(
      'cannot read the rest of the file: the compressed data is damaged or incomplete',
    )
  })

  test('knows brotli by the name of the file', async () => {
    const data = brotliCompressSync(TEXT)
    expect(await output(data, 1_000, 'app.log.br')).toBe(TEXT)
    for (const damaged of [data.subarray(0, -9), Buffer.from(TEXT)])
      await expect(output(damaged, 1_000, 'app.log.br')).rejects.toThrow('damaged or incomplete')
  })

  test('yields the first bytes of an open stream of text at once', async () => {
    const stream = new PassThrough()
    stream.write('a\n')
    const pieces = decompress(stream, 'stdin')
    expect((await pieces.next()).value).toEqual(Buffer.from('a\n'))
    await pieces.return(undefined)
    expect(stream.destroyed).toBe(true)
  })

  test('closes an open stream that it cannot decompress', async () => {
    const stream = new PassThrough()
    stream.write('PK\u0003\u0004')
    await expect(decompress(stream, 'stdin').next()).rejects.toThrow('compressed (zip)')
    expect(stream.destroyed).toBe(true)
    const damaged = new PassThrough()
    damaged.write(Buffer.concat([gzipSync('a\n').subarray(0, 10), Buffer.alloc(100, 0xff)]))
    await expect(decompress(damaged, 'stdin').next()).rejects.toThrow('damaged or incomplete')
    expect(damaged.destroyed).toBe(true)
  })

  test('yields small pieces of a stream that expands a thousandfold', async () => {
    const bomb = gzipSync(Buffer.alloc(200_000_000, 'x'))
    let bytes = 0
    let largest = 0
    for await (const piece of decompress(Readable.from([bomb]), 'bomb')) {
      bytes += piece.length
      largest = Math.max(largest, piece.length)
    }
    expect(bytes).toBe(200_000_000)
    expect(largest).toBeLessThanOrEqual(65_536)
  })
})

const SPECIAL_TEXT = 'Käse\r\n🧀 second line\n'
const little = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(SPECIAL_TEXT, 'utf16le')])
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
    expect((await decode(little, bytes)).toString()).toBe(SPECIAL_TEXT)
    expect((await decode(big, bytes)).toString()).toBe(SPECIAL_TEXT)
  },
)

test.each([
  ['UTF-8', Buffer.from(SPECIAL_TEXT)],
  ['Latin-1', Buffer.from(SPECIAL_TEXT, 'latin1')],
  ['one byte of a mark', Buffer.from([0xff])],
  ['nothing', Buffer.alloc(0)],
])('%s is not changed', async (_name, bytes) => {
  expect(await decode(bytes, 1)).toEqual(bytes)
})

test('half a character at the end is replaced', async () => {
  expect((await decode(little.subarray(0, 5), 2)).toString()).toBe('K\uFFFD')
})
