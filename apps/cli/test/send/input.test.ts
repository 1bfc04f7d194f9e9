import { PassThrough, Readable } from 'node:stream'
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { decompress, type Line, readLines } from '../../src/send/input.ts'

/** A frame of zstd that is not data. */
const skippable = (kind: number): Buffer => Buffer.from([0x50 + kind, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
const withChecksum = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

const TEXT = 'first line\nsecond line\n'.repeat(50_000)

function* inPieces(data: Buffer, pieceBytes: number): Generator<Buffer> {
  for (let from = 0; from < data.length; from += pieceBytes) yield data.subarray(from, from + pieceBytes)
}

/** The output for data that arrives in pieces of `pieceBytes`. */
async function output(data: Buffer, pieceBytes = 65_536, name = 'the file'): Promise<string> {
  const found = await Array.fromAsync(decompress(Readable.from(inPieces(data, pieceBytes)), name))
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
  ])('yields the lines of %s, in pieces of any size', async (_name, data) => {
    expect(await output(data)).toBe(TEXT)
    expect(await output(data, 1_000)).toBe(TEXT)
    expect(await output(data.subarray(0, 40), 1).catch(() => 'cut off')).not.toBe('')
  })

  test.each(['', '\n', 'BZh', 'BZh9 is no signature', 'PK', '(µ/ý'])(
    'does not change short input: %j',
    async (text) => {
      expect(await output(Buffer.from(text), 1)).toBe(text)
    },
  )

  test.each([
    ['compressed (xz)', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 4])],
    ['compressed (zip)', Buffer.from('PK\u0003\u0004\u0014\u0000')],
    ['compressed (bzip2)', Buffer.from('BZh91AY&SY\u0001')],
    ['UTF-16', Buffer.from('\uFEFFline', 'utf16le')],
    ['UTF-16', Buffer.from('\uFEFFline', 'utf16le').swap16()],
  ])('rejects what is %s with the command that converts it', async (format, data) => {
    await expect(output(data)).rejects.toThrow(`cannot read the file: it is ${format}; convert it first: `)
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

  test('yields the first bytes of an open stream at once', async () => {
    const stream = new PassThrough()
    stream.write('a\n')
    const pieces = decompress(stream, 'stdin')
    expect((await pieces.next()).value).toEqual(Buffer.from('a\n'))
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

/** The lines of a string that arrives in pieces of `pieceBytes`. */
async function split(text: string | Buffer, pieceBytes: number, bytesMax = 1_000): Promise<Line[]> {
  return (
    await Array.fromAsync(
      readLines(Readable.from(inPieces(Buffer.from(text as string), pieceBytes)), bytesMax),
    )
  ).flat()
}

const texts = (lines: readonly Line[]): (string | undefined)[] => lines.map(({ text }) => text)

describe.each([1, 2, 3, 7, 1_000])('in pieces of %i bytes', (pieceBytes) => {
  test('lines end in LF or CRLF; the last line needs no line ending', async () => {
    expect(texts(await split('a\nbc\r\n\n\r\nd', pieceBytes))).toEqual(['a', 'bc', '', '', 'd'])
    expect(texts(await split('a\n', pieceBytes))).toEqual(['a'])
    expect(texts(await split('', pieceBytes))).toEqual([])
  })

  test('a carriage return within a line is kept', async () => {
    expect(texts(await split('a\rb\r\r\n', pieceBytes))).toEqual(['a\rb\r'])
  })

  test('NUL bytes before a line do not belong to it', async () => {
    const lines = await split(`\0\0\0\0\0\0\0a\0b\n\0\n\0\0c`, pieceBytes, 5)
    expect(texts(lines)).toEqual(['a\0b', '', 'c'])
    expect(await split('a\n\0\0', pieceBytes)).toHaveLength(1)
  })

  test('characters stay whole wherever the pieces end', async () => {
    expect(texts(await split('Ä東👩‍💻\nß', pieceBytes))).toEqual(['Ä東👩‍💻', 'ß'])
  })

  test('a line that is too long is yielded without its content, and the next line is read', async () => {
    const lines = await split('12345\n123456\r\n12345\r\n1234567890123\nx', pieceBytes, 5)
    expect(texts(lines)).toEqual(['12345', undefined, '12345', undefined, 'x'])
  })

  test('invalid UTF-8 is repaired and flagged', async () => {
    const lines = await split(Buffer.from([0x61, 0xe4, 0x0a, 0x62]), pieceBytes)
    expect(lines).toEqual([
      { text: 'a\uFFFD', wasUtf8: false },
      { text: 'b', wasUtf8: true },
    ])
  })

  test('a byte order mark is removed, but only at the beginning', async () => {
    expect(texts(await split('\uFEFFa\n\uFEFFb', pieceBytes))).toEqual(['a', '\uFEFFb'])
  })
})
