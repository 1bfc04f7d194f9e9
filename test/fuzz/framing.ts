import { happens, integer, pick, type Random } from '@sluice/harness'
import type { Draft, FuzzKeys } from './fuzz-request.ts'

/** Makes the bytes of a request when its keys are known. */
type Assemble = (keys: FuzzKeys) => Buffer

/** Joins head and body with valid or invalid framing, and records the mutation in the draft. */
export function frame(draft: Draft, random: Random): Assemble {
  if (happens(random, 0.06)) return frameInvalidly(draft, random)
  if (happens(random, 0.18)) {
    const chunks = chunked(draft.body, random)
    // HTTP/1.0 has no chunked encoding.
    draft.mutated('chunked', draft.version === 'HTTP/1.1' ? 'keeps' : 'torn')
    return (keys) => join(draft.head(keys), te('chunked'), chunks)
  }
  if (happens(random, 0.005)) {
    // Without a length there is no body.
    draft.entries = undefined
    draft.records = 0
    draft.mutated('no body')
    return (keys) => join(draft.head(keys), '', Buffer.alloc(0))
  }
  return (keys) => valid(draft, keys)
}

function chunked(body: Buffer, random: Random): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length;) {
    const size = Math.min(body.length - at, integer(random, 1, Math.max(1, Math.ceil(body.length / 3))))
    const digits = happens(random, 0.5) ? size.toString(16) : `00${size.toString(16).toUpperCase()}`
    const extension = happens(random, 0.1) ? ';name="value"' : ''
    parts.push(Buffer.from(`${digits}${extension}\r\n`), body.subarray(at, at + size), Buffer.from('\r\n'))
    at += size
  }
  parts.push(Buffer.from(happens(random, 0.1) ? '0\r\nX-Trailer: x\r\n\r\n' : '0\r\n\r\n'))
  return Buffer.concat(parts)
}

const length = (value: string | number): string => `Content-Length: ${value}\r\n`
const te = (value: string): string => `Transfer-Encoding: ${value}\r\n`

const badLengths = ['-1', '+5', '0x10', '1e3', '', ' ', '5 5', '9'.repeat(30), '18446744073709551616', '1,1']
const badEncodings = ['identity', 'xchunked', 'chunked, identity', 'chunked, chunked', 'gzip, chunked', '']
const badSizes = [
  '-1\r\n',
  'g\r\n',
  '0x5\r\n',
  '\r\n',
  `${'F'.repeat(17)}\r\n`,
  '5',
  '5\n',
  '5;\0\r\n',
  ' 5\r\n',
]

type Framing = readonly [headerLines: string, afterHead: Buffer]

/** Invalid lengths of the body. */
const invalidFramings: Readonly<Record<string, (body: Buffer, random: Random) => Framing>> = {
  'a length that is too large': (body, random) => [length(body.length + integer(random, 1, 9)), body],
  'a length that is too small': (body, random) => [
    length(Math.max(0, body.length - integer(random, 1, 9))),
    body,
  ],
  'an invalid length': (body, random) => [length(pick(random, badLengths)), body],
  'two lengths': (body, random) => [length(body.length) + length(body.length + integer(random, 0, 1)), body],
  'a length and chunked encoding': (body, random) => {
    const isFirst = happens(random, 0.5)
    const lines = isFirst ? length(body.length) + te('chunked') : te('chunked') + length(4)
    return [lines, chunked(body, random)]
  },
  'an invalid transfer encoding': (body, random) => [te(pick(random, badEncodings)), chunked(body, random)],
  'an invalid chunk size': (body, random) => {
    const size = Buffer.from(pick(random, badSizes))
    return [te('chunked'), Buffer.concat([size, chunked(body, random)])]
  },
  'chunks without a last chunk': (body, random) => [te('chunked'), chunked(body, random).subarray(0, -5)],
  'a long chunk extension': (body) => {
    const size = Buffer.from(`1;${'x'.repeat(20_000)}\r\n`)
    return [te('chunked'), Buffer.concat([size, body])]
  },
}

const garbage = [
  Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from('\0'.repeat(100)),
  Buffer.from('\r\n'.repeat(50)),
  Buffer.from('*1\r\n$4\r\nPING\r\n'),
]

/** Bytes that are no request, or that are changed after they were joined. */
const invalidRequests: Readonly<Record<string, (draft: Draft, random: Random) => Assemble>> = {
  garbage: (_draft, random) => {
    const bytes = pick(random, garbage)
    return () => bytes
  },
  'bare newlines': (draft) => (keys) =>
    Buffer.from(valid(draft, keys).toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
  'a byte flipped anywhere': (draft, random) => {
    const share = random()
    return (keys) => {
      const bytes = valid(draft, keys)
      const at = Math.floor(share * bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ 0x41
      return bytes
    }
  },
  'a request in the body of another': (draft) => (keys) => {
    const smuggled = Buffer.concat([Buffer.from('0\r\n\r\n'), valid(draft, keys)])
    return join(draft.head(keys), length(4) + te('chunked'), smuggled)
  },
}

function frameInvalidly(draft: Draft, random: Random): Assemble {
  draft.entries = undefined
  if (happens(random, 0.3)) {
    const [name, make] = pick(random, Object.entries(invalidRequests))
    draft.mutated(name, 'torn')
    return make(draft, random)
  }
  const [name, invalidFraming] = pick(random, Object.entries(invalidFramings))
  const [lines, bytes] = invalidFraming(draft.body, random)
  draft.mutated(name, 'torn')
  return (keys) => join(draft.head(keys), lines, bytes)
}

const valid = (draft: Draft, keys: FuzzKeys): Buffer =>
  join(draft.head(keys), length(draft.body.length), draft.body)

/** Heads are Latin-1, so that they can contain any byte. */
function join(head: string, lines: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${head}${lines}\r\n`, 'latin1'), body])
}
