import { PassThrough, Readable } from 'node:stream'
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { decompress, readLines } from '../../src/send/input.ts'

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

test.each([
  ['text', Buffer.from(TEXT)],
  ['gzip', gzipSync(TEXT)],
  ['zstd', zstdCompressSync(TEXT)],
  ['several gzip members', Buffer.concat([gzipSync(TEXT.slice(0, 1_000)), gzipSync(TEXT.slice(1_000))])],
  [
    'zstd with frames that are not data',
    Buffer.concat([skippable(0), zstdCompressSync(TEXT, withChecksum), skippable(7), skippable(15)]),
  ],
])('%s is decompressed, in pieces of any size', async (_name, data) => {
  expect(await output(data)).toBe(TEXT)
  expect(await output(data, 1_000)).toBe(TEXT)
  expect(await output(data.subarray(0, 40), 1).catch(() => 'cut off')).not.toBe('')
})

test.each(['', '\n', 'BZh', 'BZh9 is no signature', 'PK', '(µ/ý'])('short input stays: %j', async (text) => {
  expect(await output(Buffer.from(text), 1)).toBe(text)
})

test.each([
  ['compressed (xz)', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 4])],
  ['compressed (zip)', Buffer.from('PK\u0003\u0004\u0014\u0000')],
  ['compressed (bzip2)', Buffer.from('BZh91AY&SY\u0001')],
  ['UTF-16', Buffer.from('\uFEFFline', 'utf16le')],
  ['UTF-16', Buffer.from('\uFEFFline', 'utf16le').swap16()],
])('what is %s is rejected with the command that converts it', async (format, data) => {
  await expect(output(data)).rejects.toThrow(`cannot read the file: it is ${format}; convert it first: `)
})

const brotli = brotliCompressSync(TEXT)

test('brotli is known by the name of the file', async () => {
  expect(await output(brotli, 1_000, 'app.log.br')).toBe(TEXT)
})

test.each([
  ['a.gz', gzipSync(TEXT).subarray(0, -9)],
  ['a.zst', zstdCompressSync(TEXT).subarray(0, -9)],
  ['a.br', brotli.subarray(0, -9)],
  ['text.br', Buffer.from(TEXT)],
])('what is damaged or cut off is reported: %s', async (name, data) => {
  const reason = `cannot read the rest of ${name}: the compressed data is damaged or incomplete`
  await expect(output(data, 1_000, name)).rejects.toThrow(reason)
})

test('the first bytes of an open stream are yielded at once', async () => {
  const stream = new PassThrough()
  stream.write('a\n')
  expect((await decompress(stream, 'stdin').next()).value).toEqual(Buffer.from('a\n'))
})

test('a stream that expands a thousandfold is yielded in small pieces', async () => {
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

const INVALID = Buffer.from([0x61, 0xe4, 0x0a, 0x62])
test.each<[what: string, input: string | Buffer, lines: (string | undefined)[], bytesMax?: number]>([
  [
    'lines end in LF or CRLF; the last line needs no line ending',
    'a\nbc\r\n\n\r\nd',
    ['a', 'bc', '', '', 'd'],
  ],
  ['nothing follows the last line ending', 'a\n', ['a']],
  ['an empty input has no line', '', []],
  ['a carriage return within a line is kept', 'a\rb\r\r\n', ['a\rb\r']],
  ['NULs before a line do not belong to it', '\0\0\0\0\0\0\0a\0b\n\0\n\0\0c', ['a\0b', '', 'c'], 5],
  ['NULs at the end are no line', 'a\n\0\0', ['a']],
  ['characters stay whole wherever the pieces end', 'Ä東👩‍💻\nß', ['Ä東👩‍💻', 'ß']],
  [
    'a line that is too long has no content',
    '12345\n123456\r\n12345\r\n1234567\nx',
    ['12345', undefined, '12345', undefined, 'x'],
    5,
  ],
  ['invalid UTF-8 is repaired and flagged', INVALID, ['a\uFFFD', 'b']],
  ['a byte order mark is removed at the beginning only', '\uFEFFa\n\uFEFFb', ['a', '\uFEFFb']],
])('%s, in pieces of any size', async (_what, input, lines, bytesMax = 1_000) => {
  for (const pieceBytes of [1, 2, 3, 7, 1_000]) {
    const pieces = Readable.from(inPieces(Buffer.from(input as string), pieceBytes))
    const found = (await Array.fromAsync(readLines(pieces, bytesMax))).flat()
    expect(found).toEqual(Array.from(lines, (text) => ({ text, wasUtf8: text !== 'a\uFFFD' })))
  }
})
