import { happens, integer, pick, type Random } from '@sluice/harness'
import type { Draft, FuzzKeys } from './fuzz-request.ts'

/** Joins head and body with valid or invalid framing, and records the mutation in the draft. */
export function frame(draft: Draft, random: Random): (keys: FuzzKeys) => Buffer {
  if (happens(random, 0.06)) return frameInvalidly(draft, random)
  if (happens(random, 0.18)) return frameChunked(draft, random)
  // Without a length there is no body.
  if (happens(random, 0.005)) return frameWithoutBody(draft)
  return (keys) => join(draft.head(keys), `Content-Length: ${draft.body.length}\r\n\r\n`, draft.body)
}

function frameWithoutBody(draft: Draft): (keys: FuzzKeys) => Buffer {
  draft.entries = undefined
  draft.records = 0
  draft.mutated('no body')
  return (keys) => join(draft.head(keys), '\r\n', Buffer.alloc(0))
}

function frameChunked(draft: Draft, random: Random): (keys: FuzzKeys) => Buffer {
  const chunks = chunked(draft.body, random)
  // HTTP/1.0 has no chunked encoding.
  draft.mutated('chunked', draft.version === 'HTTP/1.1' ? 'keeps' : 'torn')
  return (keys) => join(draft.head(keys), 'Transfer-Encoding: chunked\r\n\r\n', chunks)
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

/** An invalid length of the body: the header lines, and the bytes after the head. */
type InvalidFraming = (body: Buffer, random: Random) => { readonly lines: string; readonly bytes: Buffer }

const length = (value: string | number): string => `Content-Length: ${value}\r\n`
const te = (value: string): string => `Transfer-Encoding: ${value}\r\n`

const invalidFramings: Readonly<Record<string, InvalidFraming>> = {
  'a length that is too large': (body, random) => ({
    lines: length(body.length + integer(random, 1, 9)),
    bytes: body,
  }),
  'a length that is too small': (body, random) => ({
    lines: length(Math.max(0, body.length - integer(random, 1, 9))),
    bytes: body,
  }),
  'an invalid length': (body, random) => ({
    lines: length(
      pick(random, [
        '-1',
        '+5',
        '0x10',
        '1e3',
        '',
        ' ',
        '5 5',
        '9'.repeat(30),
        '18446744073709551616',
        '1,1',
      ]),
    ),
    bytes: body,
  }),
  'two lengths': (body, random) => ({
    lines: length(body.length) + length(body.length + integer(random, 0, 1)),
    bytes: body,
  }),
  'a length and chunked encoding': (body, random) => ({
    lines: happens(random, 0.5) ? length(body.length) + te('chunked') : te('chunked') + length(4),
    bytes: chunked(body, random),
  }),
  'an invalid transfer encoding': (body, random) => ({
    lines: te(
      pick(random, [
        'identity',
        'xchunked',
        'chunked, identity',
        'chunked, chunked',
        'gzip, chunked',
        '',
        'CHUNKED ',
      ]),
    ),
    bytes: chunked(body, random),
  }),
  'an invalid chunk size': (body, random) => ({
    lines: te('chunked'),
    bytes: Buffer.concat([
      Buffer.from(
        pick(random, [
          '-1\r\n',
          'g\r\n',
          '0x5\r\n',
          '\r\n',
          'F'.repeat(17) + '\r\n',
          '5',
          '5\n',
          '5;\0\r\n',
          ' 5\r\n',
        ]),
      ),
      chunked(body, random),
    ]),
  }),
  'chunks without a last chunk': (body, random) => ({
    lines: te('chunked'),
    bytes: chunked(body, random).subarray(0, -5),
  }),
  'a wrong chunk size': (body) => ({
    lines: te('chunked'),
    bytes: Buffer.concat([
      Buffer.from(`${(body.length + 1).toString(16)}\r\n`),
      body,
      Buffer.from('\r\n0\r\n\r\n'),
    ]),
  }),
  'a long chunk extension': (body) => ({
    lines: te('chunked'),
    bytes: Buffer.concat([Buffer.from(`1;${'x'.repeat(20_000)}\r\n`), body]),
  }),
}

const garbage = [
  Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from('\0'.repeat(100)),
  Buffer.from('\r\n'.repeat(50)),
  Buffer.from('*1\r\n$4\r\nPING\r\n'),
  Buffer.from('EHLO localhost\r\n'),
]

function frameInvalidly(draft: Draft, random: Random): (keys: FuzzKeys) => Buffer {
  draft.entries = undefined
  const kind = integer(random, 0, 13)
  if (kind === 0) {
    draft.mutated('garbage', 'torn')
    const bytes = pick(random, garbage)
    return () => bytes
  }
  if (kind === 1) {
    draft.mutated('bare newlines', 'torn')
    return (keys) => Buffer.from(valid(draft, keys).toString('latin1').replaceAll('\r\n', '\n'), 'latin1')
  }
  if (kind === 2) {
    draft.mutated('a byte flipped anywhere', 'torn')
    const share = random()
    return (keys) => {
      const bytes = valid(draft, keys)
      const at = Math.floor(share * bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ 0x41
      return bytes
    }
  }
  if (kind === 3) {
    draft.mutated('a request in the body of another', 'torn')
    return (keys) =>
      join(
        draft.head(keys),
        length(4) + te('chunked') + '\r\n',
        Buffer.concat([Buffer.from('0\r\n\r\n'), valid(draft, keys)]),
      )
  }
  const [name, invalidFraming] = pick(random, Object.entries(invalidFramings))
  const { lines, bytes } = invalidFraming(draft.body, random)
  draft.mutated(name, 'torn')
  return (keys) => join(draft.head(keys), `${lines}\r\n`, bytes)
}

function valid(draft: Draft, keys: FuzzKeys): Buffer {
  return join(draft.head(keys), `${length(draft.body.length)}\r\n`, draft.body)
}

/** Heads are Latin-1, so that they can contain any byte. */
function join(head: string, rest: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(head + rest, 'latin1'), body])
}
