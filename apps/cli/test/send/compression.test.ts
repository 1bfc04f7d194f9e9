import { PassThrough, Readable } from 'node:stream'
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { decompress } from '../../src/send/compression.ts'

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

/** A frame of zstd with a window and blocks that are not compressed, and one that repeats a byte. */
function zstdOf(text: string): Buffer {
  const parts = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x38])]
  for (let at = 0; at < text.length; at += 65_535) {
    const data = Buffer.from(text.slice(at, at + 65_535))
    const header = Buffer.alloc(3)
    header.writeUIntLE(data.length << 3, 0, 3)
    parts.push(header, data)
  }
  return Buffer.concat([...parts, Buffer.from([(0 << 3) | 2 | 1, 0, 0, 0x78])])
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
    ['zstd without compression', zstdOf(TEXT)],
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

  test.each([
    ['zstd and text', Buffer.from('text')],
    ['zstd and zeros', Buffer.alloc(70_000)],
    ['zstd and a frame without its first byte', zstdCompressSync('lost').subarray(1)],
    ['zstd and a frame of a byte', zstdCompressSync('lost').subarray(0, 1)],
    ['zstd and a frame without its last byte', zstdCompressSync('lost').subarray(0, -1)],
    ['zstd and a part of a frame that is not data', skippable(3).subarray(0, -1)],
    ['zstd and a part of its first bytes', skippable(3).subarray(0, 3)],
  ])('yields the text of %s, and reports that something follows', async (_name, rest) => {
    const data = Buffer.concat([zstdCompressSync(TEXT), rest])
    for (const pieceBytes of [1, 1_000, data.length]) {
      const found: Buffer[] = []
      const pieces = Array.from({ length: Math.ceil(data.length / pieceBytes) }, (_, i) =>
        data.subarray(i * pieceBytes, (i + 1) * pieceBytes),
      )
      const reading = (async () => {
        for await (const piece of decompress(Readable.from(pieces), 'the file')) found.push(piece)
      })()
      await expect(reading).rejects.toThrow('cannot read the rest of the file')
      expect(Buffer.concat(found).toString()).toContain(TEXT)
    }
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
