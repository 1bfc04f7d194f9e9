import { limits } from '@sluice/schema'
import { describe, expect, it, vi } from 'vitest'
import { valueBounds } from '../../src/intake/value-finder.ts'
import { Problem } from '../../src/problems.ts'
import type { Protocol } from '../../src/protocols/protocol.ts'
import { protocols } from '../../src/routes/protocols.ts'

/** Enough for many steps. */
const max = 500_000
const fill = (head: string, unit: string, tail = '', bytes = max): string =>
  head + unit.repeat(Math.floor((bytes - head.length - tail.length) / unit.length)) + tail

/** JSON with more members than any record has. */
const members = `{${Array.from({ length: 40_000 }, (_, i) => `"n${i}":1`).join()}}`

/** JSON that would take long to parse, or that has millions of values. */
const attacks: Readonly<Record<string, string>> = {
  brackets: fill('', '['),
  'closed brackets': '['.repeat(max / 2) + ']'.repeat(max / 2),
  'newlines before a document': fill('', '\n', '{"index":{}}\n{}\n'),
  'a string': fill('"', 'x', '"'),
  objects: fill('[', '{},', '{}]'),
  'nested objects': fill('{"event":[', '{},', '1e400]}'),
  members,
  'a stream of members': `{"streams":[{"stream":${members},"values":[["0","x"]]}]}`,
  streams: fill('{"streams":[', '{},', '{}]}'),
  'escaped names': fill('{"a":1', String.raw`,"\u0073treams":1`, '}'),
  'a document of members': `{"index":{}}\n${members}\n`,
  'an action of members': `${members}\n{}\n`,
  'an event of members': `{"event":${members}}`,
}

/** In a step: a chunk of a scan, or one record. */
const STEP_BYTES = 64 * 1024

const samples: readonly (readonly [path: string, protocol: Protocol])[] = protocols
  .filter(({ paths }) => !paths.some((path) => path.includes('/ack') || path.includes('/raw')))
  .map((protocol) => [protocol.paths[0] ?? '', protocol])

describe.each(samples)('%s', (_path, protocol) => {
  it.each(Object.keys(attacks))('takes a step for each few bytes: %s', (name) => {
    const body = Buffer.from(attacks[name] ?? '')
    const parse = vi.spyOn(JSON, 'parse')
    let steps = 0
    let records = 0
    let isStopped = false
    try {
      const request = { headers: { 'content-type': 'application/json' }, params: {}, query: {} }
      for (const record of protocol.read(body, request).records()) {
        steps += 1
        if (record !== undefined) records += 1
        isStopped = records > limits.recordsPerRequestMax
        if (isStopped) break
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      isStopped = true
    }
    expect(steps).toBeGreaterThanOrEqual(isStopped ? 0 : Math.floor(body.length / STEP_BYTES) - 2)
    for (const [text] of parse.mock.calls) {
      expect(text.length).toBeLessThanOrEqual(valueBounds.bytesMax)
      // Long strings are the only part that does not count.
      expect(text.split(',').length).toBeLessThan(valueBounds.weightMax / 2)
    }
  })
})
