import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { expect, it, vi } from 'vitest'
import { Turns } from '../../src/turns.ts'
import { freshTestApi } from '../support/shared-api.ts'

const api = freshTestApi()

it('a compressed body waits before it is decoded if others took the time of the turn', async () => {
  let decodedBytes: number | undefined
  vi.spyOn(Turns.prototype, 'begin').mockImplementationOnce(async () => {
    for (let turn = 0; turn < 10; turn += 1) await nextTurn()
    decodedBytes = api.counts.decodedBytes
  })
  const body = gzipSync('{"level":"info","message":"m"}')
  const answer = await api.post(body, { headers: { 'content-encoding': 'gzip' } })
  expect([answer.statusCode, decodedBytes]).toEqual([202, 0])
})
