import { limits } from '@sluice/schema'
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { decodeContent } from '../../src/intake/content-encoding.ts'
import { Problem } from '../../src/problems.ts'
import { problemCode } from '../support/problem.ts'
import { buildTestApi } from '../support/test-api.ts'

const text = Buffer.from('{"level":"info","message":"grüße 😀"}'.repeat(500))
const max = limits.bodyBytesMax

const encodings: readonly (readonly [what: string, header: string, encode: (content: Buffer) => Buffer])[] = [
  ['gzip', 'gzip', gzipSync],
  ['x-gzip', 'x-gzip', gzipSync],
  ['deflate with the zlib wrapper', 'deflate', deflateSync],
  ['deflate without the zlib wrapper', 'deflate', deflateRawSync],
  // The default quality is the slowest one.
  [
    'brotli',
    'br',
    (content) => brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  ],
  ['zstd', 'zstd', zstdCompressSync],
]

/** A frame with one raw block of one byte and a window of 1 KiB × 2^exponent (RFC 8878, 3.1.1). */
const withWindow = (exponent: number): Buffer =>
  Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 9, 0, 0, 0x61])

const problemOf = (body: Buffer, header: string): Problem => {
  try {
    decodeContent(body, header)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('the body was accepted')
}

describe.each(encodings)('a body in %s', (_encoding, header, encode) => {
  const encoded = encode(text)

  it('is decoded', () => {
    expect(decodeContent(encoded, header)).toEqual(text)
    expect(decodeContent(encoded, header.toUpperCase())).toEqual(text)
  })

  it('may be empty', () => {
    expect(decodeContent(encode(Buffer.alloc(0)), header)).toEqual(Buffer.alloc(0))
  })

  it('is rejected wherever it is cut', () => {
    for (const length of [1, 2, 5, encoded.length >> 1, encoded.length - 1]) {
      expect(problemOf(encoded.subarray(0, length), header).code).toBe('invalid_encoding')
    }
  })

  it.each([
    ['text', Buffer.from('garbage')],
    ['one zero', Buffer.from([0])],
    ['zeros and text', Buffer.from('\0\0garbage')],
  ])('is rejected if %s follows', (_what, garbage) => {
    expect(problemOf(Buffer.concat([encoded, garbage]), header).code).toBe('invalid_encoding')
  })

  it('is rejected if it has another encoding or none', () => {
    for (const other of [text, Buffer.alloc(100), Buffer.alloc(100, 0xff)]) {
      expect(problemOf(other, header).code).toBe('invalid_encoding')
    }
  })

  it('may have as many bytes as a body, and not one more', () => {
    expect(decodeContent(encode(Buffer.alloc(max, 'ab')), header)).toHaveLength(max)
    expect(problemOf(encode(Buffer.alloc(max + 1, 'ab')), header).code).toBe('body_too_large')
  })

  it('costs no more than the largest body if it is a decompression bomb', () => {
    const bomb = encode(Buffer.alloc(100_000_000))
    problemOf(bomb, header)
    const [cpu, memory] = [process.cpuUsage(), process.memoryUsage()]
    expect(problemOf(bomb, header).code).toBe('body_too_large')
    const { user, system } = process.cpuUsage(cpu)
    const { external, arrayBuffers } = process.memoryUsage()
    expect((user + system) / 1_000).toBeLessThan(100)
    expect(external + arrayBuffers - memory.external - memory.arrayBuffers).toBeLessThan(6 * max)
  })
})

describe('a body of several parts', () => {
  it.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ])('in %s is decoded completely', (header, encode) => {
    const parts = ['a', '', 'b'].map((part) => encode(part))
    expect(decodeContent(Buffer.concat(parts), header)).toEqual(Buffer.from('ab'))
    const cut = Buffer.concat([...parts, encode(text).subarray(0, 20)])
    expect(problemOf(cut, header).code).toBe('invalid_encoding')
  })

  it.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ])('in %s is rejected if it is a decompression bomb: 5 MB for many gigabytes', (header, encode) => {
    const part = encode(Buffer.alloc(max - 1))
    const bomb = Buffer.concat(Array.from({ length: Math.floor(max / part.length) }, () => part))
    expect(problemOf(bomb, header).code).toBe('body_too_large')
  })

  it.each([
    ['gzip members', 'gzip', gzipSync('')],
    ['zstd frames', 'zstd', zstdCompressSync('')],
    ['skippable zstd frames', 'zstd', Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])],
  ])(
    'is decoded within 500 ms of CPU time if it is hundreds of thousands of empty %s',
    (_what, header, part) => {
      const body = Buffer.concat(Array.from({ length: Math.floor(max / part.length) }, () => part))
      const cpu = process.cpuUsage()
      expect(decodeContent(body, header)).toHaveLength(0)
      const { user, system } = process.cpuUsage(cpu)
      expect((user + system) / 1_000).toBeLessThan(500)
    },
  )
})

describe('a body that needs much memory to decode', () => {
  it('is rejected in zstd if its window is above 8 MiB', () => {
    expect(decodeContent(withWindow(13), 'zstd')).toEqual(Buffer.from('a'))
    expect(problemOf(withWindow(14), 'zstd').message).toContain('too much memory')
  })

  it('is rejected in brotli if its window is above 16 MiB', () => {
    const params = { [constants.BROTLI_PARAM_LARGE_WINDOW]: 1, [constants.BROTLI_PARAM_LGWIN]: 30 }
    expect(problemOf(brotliCompressSync(text, { params }), 'br').code).toBe('invalid_encoding')
  })
})

describe('an encoding', () => {
  it.each([undefined, 'identity', 'IDENTITY'])('is optional: %s', (header) => {
    expect(decodeContent(text, header)).toBe(text)
  })

  it.each(['', 'lz4', 'compress', 'gzip, gzip', 'gzip,identity', 'gzip;q=1', '*', 'toString', '__proto__'])(
    'that is not supported is rejected, and the answer lists those that are: "%s"',
    (header) => {
      const { code, headers } = problemOf(text, header)
      expect({ code, headers }).toEqual({
        code: 'unsupported_encoding',
        headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
      })
    },
  )

  it('of an empty body leaves it empty', () => {
    expect(decodeContent(Buffer.alloc(0), 'gzip')).toHaveLength(0)
    expect(decodeContent(Buffer.alloc(0), 'zstd')).toHaveLength(0)
  })

  it('of a request without a body leaves it empty', async () => {
    const api = buildTestApi()
    const response = await api.post(undefined, { headers: { 'content-encoding': 'gzip' } })
    expect(problemCode(response)).toBe('empty_body')
    await api.close()
  })
})
