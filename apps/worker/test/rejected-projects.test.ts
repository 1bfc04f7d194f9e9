import { rowKey } from '@sluice/rows'
import { expect, it } from 'vitest'
import { APART_MS, RejectedProjects } from '../src/rejected-projects.ts'
import { makeChunk } from './support/chunks.ts'

it('have rows in a chunk for a minute after the last rejection, wherever they are in it, and the latest 16 are known', () => {
  let nowMs = 0
  const projects = new RejectedProjects({ nowMs: () => nowMs })
  const first = makeChunk('1', ['q\t1\n', 'p\tq\n'])
  const last = makeChunk('2', ['p\t1\n', 'q\t2\n'])
  const none = makeChunk('3', ['qq\tq\n', 'p\tp\n'])
  const broken = { ...first, frame: Buffer.from('not a frame') }
  const found = (): boolean[] => [first, last, none, broken].map((chunk) => projects.haveRowsIn(chunk))
  expect(found()).toEqual([false, false, false, false])
  projects.note([rowKey('q')])
  nowMs = APART_MS
  expect(found()).toEqual([true, true, false, false])
  projects.note(Array.from({ length: 15 }, (_, i) => rowKey(`r${i}`)))
  expect(found()).toEqual([true, true, false, false])
  projects.note([rowKey('s')])
  expect(found()).toEqual([false, false, false, false])
  projects.note([rowKey('q')])
  nowMs += APART_MS + 1
  expect(found()).toEqual([false, false, false, false])
})
