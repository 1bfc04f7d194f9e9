import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { defaultStatePath, FollowState, newSegment } from '../../../src/send/follow/follow-state.ts'

const identity = { device: '1', inode: '18446744073709551615', headBytes: 3, headHash: 'abc' }

let folder = ''
let path = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-state-'))
  path = join(folder, 'deep', 'state.json')
})
afterEach(() => rm(folder, { recursive: true }))

test('what was saved is read again', async () => {
  const state = await FollowState.open(path)
  state.segmentsOf('/a').push(newSegment(identity, 7, 0))
  state.segmentsOf('__proto__').push(newSegment(identity, 8, 0))
  await state.save()
  await state.close()
  const again = await FollowState.open(path)
  expect(again.segmentsOf('/a')).toMatchObject([{ identity, offset: 7, ends: [] }])
  expect(again.segmentsOf('__proto__')).toMatchObject([{ offset: 8 }])
  expect(again.segmentsOf('/b')).toEqual([])
  await again.close()
})

test('a save includes every change before it, also while another save runs', async () => {
  const state = await FollowState.open(path)
  const segment = newSegment(identity, 0, 0)
  state.segmentsOf('/a').push(segment)
  const persisted: (number | undefined)[] = []
  const expected: number[] = []
  for (let offset = 1; offset <= 200; offset += 1) {
    segment.offset = offset
    const saved = state.save()
    if (offset % 20 !== 0) continue
    await saved
    const { files } = JSON.parse(await readFile(path, 'utf8')) as {
      files: Record<string, { offset: number }[]>
    }
    persisted.push(files['/a']?.[0]?.offset)
    expected.push(offset)
  }
  expect(persisted).toEqual(expected)
  await state.close()
  expect(await readdir(join(folder, 'deep'))).toEqual(['state.json'])
})

test('two processes do not use the same state; one that was killed does not keep it', async () => {
  const state = await FollowState.open(path)
  // The process that started this one certainly runs.
  await writeFile(`${path}.lock`, String(process.ppid))
  await expect(FollowState.open(path)).rejects.toThrow(
    `process ${process.ppid} follows with the state file ${path}`,
  )
  await writeFile(`${path}.lock`, '999999999')
  const other = await FollowState.open(path)
  await other.close()
  await state.close()
})

test.runIf(process.platform === 'linux')(
  'a later process with the same id does not keep the state',
  async () => {
    const state = await FollowState.open(path)
    expect(await readFile(`${path}.lock`, 'utf8')).toMatch(/^\d+ \d+$/)
    await state.close()
    await writeFile(`${path}.lock`, `${process.ppid} 1`)
    const other = await FollowState.open(path)
    await other.close()
  },
)

const ofSegment = (segment: unknown): string =>
  JSON.stringify({ version: 1, files: { '/app.log': [segment] } })

test('a damaged state is reported, and not replaced', async () => {
  const state = await FollowState.open(path)
  await state.close()
  const segment = newSegment(identity, 0, 0)
  const malformed = [
    null,
    { ...segment, identity: { ...identity, inode: 2 } },
    { ...segment, offset: -1 },
    { ...segment, ends: [1, '2'] },
    { ...segment, modifiedMs: null },
    { ...segment, isEnded: undefined },
  ]
  await writeFile(path, ofSegment(segment))
  const other = await FollowState.open(path)
  await other.close()
  for (const contents of ['', '{', '{"version":2,"files":{}}', ...malformed.map(ofSegment)]) {
    await writeFile(path, contents)
    await expect(FollowState.open(path)).rejects.toThrow(
      `the state file ${path} is damaged; delete it to send`,
    )
    expect(await readFile(path, 'utf8')).toBe(contents)
    await rm(`${path}.lock`, { force: true })
  }
})

test('each file and API has its own default state', () => {
  const home = { HOME: '/home/a' }
  const first = defaultStatePath('/var/log/a.log', 'https://a/v1/logs', home)
  expect(first).toMatch(/^\/home\/a\/\.local\/state\/sluice\/follow\/[0-9a-f]{32}\.json$/)
  expect(defaultStatePath('/var/log/a.log', 'https://a/v1/logs', home)).toBe(first)
  expect(defaultStatePath('/var/log/b.log', 'https://a/v1/logs', home)).not.toBe(first)
  expect(defaultStatePath('/var/log/a.log', 'https://b/v1/logs', home)).not.toBe(first)
  expect(defaultStatePath('/a', 'b', { ...home, XDG_STATE_HOME: '/state' })).toMatch(
    /^\/state\/sluice\/follow\//,
  )
})
