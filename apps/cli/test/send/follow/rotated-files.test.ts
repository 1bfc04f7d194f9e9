import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openRotated } from '../../../src/send/follow/rotated-files.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rotated-'))
})
afterEach(() => rm(folder, { recursive: true }))

test.each([
  ['with numbers', (i: number) => `app.log.${i}`, 'app.log.1'],
  ['with dates', (i: number) => `app.log-${20_260_000 + i}`, 'app.log-20261001'],
])('the newest of more than 1,000 files %s is found', async (_kind, nameOf, newest) => {
  const path = join(folder, 'app.log')
  await writeFile(path, '')
  for (let i = 1; i <= 1_001; i += 1) await writeFile(join(folder, nameOf(i)), '')
  const found = await openRotated(path)
  for (const { file } of found) await file.close()
  expect(found).toHaveLength(1_000)
  expect(found.map((rotated) => basename(rotated.path))).toContain(newest)
})
