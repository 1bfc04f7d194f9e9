import { rowKey } from '@sluice/rows'
import { expect, it } from 'vitest'
import { APART_MS, RejectedProjects } from '../src/rejected-projects.ts'
import { makeChunk, makeTextChunk } from './support/chunks.ts'

/** A row of a project with the name of another one as a value. */
const rowOf = (projectId: string, other = ''): string => `${projectId}\t\t\t\t\t${other}\n`

it.each([
  ['blocks', makeChunk],
  ['text', makeTextChunk],
])(
  'have rows in a chunk of %s for a minute after the last rejection, wherever they are in it, and the latest 16 are known',
  (_what, chunkOf) => {
    let nowMs = 0
    const projects = new RejectedProjects({ nowMs: () => nowMs })
    const first = chunkOf('1', [rowOf('q'), rowOf('p', 'q')])
    const last = chunkOf('2', [rowOf('p'), rowOf('q')])
    const none = chunkOf('3', [rowOf('qq', 'q'), rowOf('p', 'p')])
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
  },
)
