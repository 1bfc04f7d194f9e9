import { type FileHandle, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hasHeadOf, identify } from '../../../src/send/follow/file-identity.ts'
import { newSegment, type Segment } from '../../../src/send/follow/follow-state.ts'
import { OpenLog } from '../../../src/send/follow/open-log.ts'

let folder = ''
let path = ''
let file: FileHandle
let segment: Segment
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-open-'))
  path = join(folder, 'app.log')
  await writeFile(path, 'first\nsecond\n')
  file = await open(path)
  segment = newSegment(await identify(file, 0), 0, 0)
})
afterEach(async () => {
  await file.close()
  await rm(folder, { recursive: true })
})

/** The file, which another program rewrites right before or right after it is read. */
function rewrittenWhileRead(text: string, isBefore: boolean): FileHandle {
  const read = async (buffer: Buffer, offset: number, length: number, position: number): Promise<unknown> => {
    if (isBefore) await writeFile(path, text)
    const result = await file.read(buffer, offset, length, position)
    if (!isBefore) await writeFile(path, text)
    return result
  }
  return new Proxy(file, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      // `identify` reads only the beginning.
      if (name === 'read') return read
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

test('a file is read in pieces, and an empty piece is its end', async () => {
  const opened = new OpenLog(file, segment, 0)
  const pieces: (string | undefined)[] = []
  for (let i = 0; i < 4; i += 1) pieces.push((await opened.readPiece(5))?.toString())
  expect(pieces).toEqual(['first', '\nseco', 'nd\n', ''])
  expect(opened.position).toBe(13)
  expect(segment.identity.headBytes).toBe(13)
  expect(segment.modifiedMs).toBe((await file.stat()).mtimeMs)
})

test.each([true, false])(
  'a piece does not count if the file was rewritten while it was read (before the read: %s)',
  async (isBefore) => {
    await new OpenLog(file, segment, 0).readPiece(6)
    const { identity } = segment
    const opened = new OpenLog(rewrittenWhileRead('other lines, and more of them\n', isBefore), segment, 6)
    expect(await opened.readPiece(7)).toBeUndefined()
    expect(opened.position).toBe(6)
    expect(segment.identity).toEqual(identity)
  },
)

test('a file that was rewritten while its first piece was read is known by this piece', async () => {
  const opened = new OpenLog(rewrittenWhileRead('other lines, and more of them\n', false), segment, 0)
  expect(await opened.readPiece(6)).toBeUndefined()
  expect(opened.position).toBe(0)
  const copy = join(folder, 'app.log.1')
  await writeFile(copy, 'first\nsecond\n')
  const copied = await open(copy)
  expect(segment.identity.headBytes).toBe(6)
  expect(await hasHeadOf(copied, segment.identity)).toBe(true)
  await copied.close()
})
