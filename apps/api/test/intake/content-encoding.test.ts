import { randomBytes } from 'node:crypto'
import { limits } from '@sluice/schema'
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  ContentDecoder,
  type Decoder,
  decoderFor,
  decodeSmall,
  decodingLimits,
} from '../../src/intake/content-encoding.ts'
import { Problem } from '../../src/problems.ts'
import { problemOf as problemOfRun } from '../support/intake.ts'

const text = Buffer.from('{"level":"info","message":"grüße 😀"}'.repeat(500))
const max = limits.bodyBytesMax

// The default quality of Brotli is the slowest one.
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
const encodings: readonly (readonly [what: string, header: string, encode: (content: Buffer) => Buffer])[] = [
  ['gzip', 'gzip', gzipSync],
  ['deflate with the zlib wrapper', 'deflate', deflateSync],
  ['deflate without the zlib wrapper', 'deflate', deflateRawSync],
  ['brotli', 'br', (content) => brotliCompressSync(content, brotli)],
  ['zstd', 'zstd', zstdCompressSync],
]

/** A frame with one raw block of one byte and a window of 1 KiB × 2^exponent (RFC 8878, 3.1.1). */
const withWindow = (exponent: number): Buffer =>
  Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 9, 0, 0, 0x61])

const decoder = new ContentDecoder()
/** As the route does: at once if the body is small. */
const decodeContent = async (body: Buffer, header: string): Promise<Buffer> => {
  const found = decoderFor(header)
  if (found === undefined) return body
  return decodeSmall(body, found) ?? (await decoder.decode(body, found, 'demo'))
}
const by = (header: string): Decoder => decoderFor(header) as Decoder

const problemOf = (body: Buffer, header: string): Promise<Problem> =>
  problemOfRun(() => decodeContent(body, header))

describe.each(encodings)('a body in %s', (_encoding, header, encode) => {
  const encoded = encode(text)

  it('is decoded, also if it is empty', async () => {
    expect(await decodeContent(encoded, header)).toEqual(text)
    expect(await decodeContent(encoded, header.toUpperCase())).toEqual(text)
    for (const empty of [encode(Buffer.alloc(0)), Buffer.alloc(0)])
      expect(await decodeContent(empty, header)).toHaveLength(0)
  })

  it('is rejected if it is cut, continues, or has another encoding or none', async () => {
    const cut = [1, 2, 5, encoded.length >> 1, encoded.length - 1].map((end) => encoded.subarray(0, end))
    const continued = ['garbage', '\0', '\0\0garbage'].map((tail) =>
      Buffer.concat([encoded, Buffer.from(tail)]),
    )
    for (const body of [...cut, ...continued, text, Buffer.alloc(100), Buffer.alloc(100, 0xff)])
      expect((await problemOf(body, header)).code).toBe('invalid_encoding')
  })

  it('may have as many bytes as a body, and not one more', async () => {
    expect(await decodeContent(encode(Buffer.alloc(max, 'ab')), header)).toHaveLength(max)
    expect((await problemOf(encode(Buffer.alloc(max + 1, 'ab')), header)).code).toBe('body_too_large')
  })

  it('takes no more memory than a few of the largest bodies if it is a decompression bomb', async () => {
    const bomb = encode(Buffer.alloc(100_000_000))
    const memory = process.memoryUsage()
    expect((await problemOf(bomb, header)).code).toBe('body_too_large')
    const { external, arrayBuffers } = process.memoryUsage()
    expect(external + arrayBuffers - memory.external - memory.arrayBuffers).toBeLessThan(6 * max)
  })
})

const skippableFrame = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])
/** As many of this part as a body may have. */
const times = (part: Buffer): Buffer =>
  Buffer.concat(Array.from({ length: Math.floor(max / part.length) }, () => part))

it.each([
  { header: 'gzip', encode: gzipSync, emptyParts: [gzipSync('')] },
  { header: 'zstd', encode: zstdCompressSync, emptyParts: [zstdCompressSync(''), skippableFrame] },
])('a body in $header may have several parts', async ({ header, encode, emptyParts }) => {
  const parts = ['a', '', 'b'].map((part) => encode(part))
  expect(await decodeContent(Buffer.concat(parts), header)).toEqual(Buffer.from('ab'))
  const cut = Buffer.concat([...parts, encode(text).subarray(0, 20)])
  expect((await problemOf(cut, header)).code).toBe('invalid_encoding')
  for (const part of emptyParts) expect(await decodeContent(times(part), header)).toHaveLength(0)
  // 5 MB for many gigabytes.
  const bomb = times(encode(Buffer.alloc(max - 1)))
  expect((await problemOf(bomb, header)).code).toBe('body_too_large')
})

it('the event loop decodes only small bodies', () => {
  const { encodedBytesMax, decodedBytesMax, decodedPerEncodedMax } = decodingLimits
  const noise = randomBytes(decodedBytesMax / 16)
  const decoded = (bytes: number): Buffer =>
    gzipSync(Buffer.concat([noise, Buffer.alloc(bytes - noise.length)]))
  expect(decodeSmall(decoded(decodedBytesMax), by('gzip'))).toHaveLength(decodedBytesMax)
  expect(decodeSmall(decoded(decodedBytesMax + 1), by('gzip'))).toBeUndefined()
  const empty = zstdCompressSync('')
  const frames = Buffer.concat(Array.from({ length: encodedBytesMax / empty.length + 1 }, () => empty))
  expect(decodeSmall(frames, by('zstd'))).toBeUndefined()
  for (const [, header, encode] of encodings) {
    const bomb = encode(Buffer.alloc(decodedBytesMax))
    expect(bomb.length * decodedPerEncodedMax).toBeLessThan(decodedBytesMax)
    expect(decodeSmall(bomb, by(header))).toBeUndefined()
  }
})

describe('bodies that are decoded at the same time', () => {
  const encoded = gzipSync(text)
  const { threadsMax, waitingMax, projectWaitingMax } = decodingLimits
  let busy: ContentDecoder
  let decoded: string[]

  beforeEach(() => {
    busy = new ContentDecoder()
    decoded = []
  })

  /** The codes of the problems of some bodies. */
  async function problemsOf(projectId: string, bodies: number): Promise<string[]> {
    const results = Array.from({ length: bodies }, () =>
      busy.decode(encoded, by('gzip'), projectId).then(
        (content) => {
          expect(content).toEqual(text)
          decoded.push(projectId)
          return []
        },
        (problem: Problem) => [problem.code],
      ),
    )
    return (await Promise.all(results)).flat()
  }

  it('wait for a thread, up to a limit for each project', async () => {
    const found = await problemsOf('a', threadsMax + projectWaitingMax + 1)
    expect([found, decoded.length]).toEqual([['overloaded'], threadsMax + projectWaitingMax])
    expect(await problemsOf('a', 1)).toEqual([])
  })

  it('wait for a thread, up to a limit for all projects', async () => {
    const bodies = projectWaitingMax - 10
    const found = await Promise.all(['a', 'b', 'c', 'd'].map((project) => problemsOf(project, bodies)))
    expect(decoded.length).toBe(threadsMax + waitingMax)
    expect(found.flat().length).toBe(4 * bodies - decoded.length)
  })

  it('are decoded by their projects in turn', async () => {
    await Promise.all([problemsOf('large', threadsMax + 50), problemsOf('small', 2)])
    expect(decoded.lastIndexOf('small')).toBeLessThan(threadsMax + 10)
  })
})

it('a body in zstd is rejected if its window is above 8 MiB, and in brotli above 16 MiB', async () => {
  expect(await decodeContent(withWindow(13), 'zstd')).toEqual(Buffer.from('a'))
  expect((await problemOf(withWindow(14), 'zstd')).message).toContain('too much memory')
  const params = { [constants.BROTLI_PARAM_LARGE_WINDOW]: 1, [constants.BROTLI_PARAM_LGWIN]: 30 }
  expect((await problemOf(brotliCompressSync(text, { params }), 'br')).code).toBe('invalid_encoding')
})
