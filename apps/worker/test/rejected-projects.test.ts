import { rowKey } from '@sluice/rows'
import { expect, it } from 'vitest'
import { APART_MS, RejectedProjects } from '../src/rejected-projects.ts'
import { makeChunk } from './support/chunks.ts'

/** A row of a project with the name of another one as a value. */
const rowOf = (projectId: string, other = ''): string => `${projectId}\t\t\t\t\t${other}\n`

it('have rows in a chunk for a minute after the last rejection, wherever they are in it, and the latest 16 are known', () => {
  let nowMs = 0
  const projects = new RejectedProjects({ nowMs: () => nowMs })
  const first = makeChunk('1', [rowOf('q'), rowOf('p', 'q')])
  const last = makeChunk('2', [rowOf('p'), rowOf('q')])
  const none = makeChunk('3', [rowOf('qq', 'q'), rowOf('p', 'p')])
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
