import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readLocalServices } from '../src/local-services.ts'

let dataDirectory = ''
beforeEach(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
})
afterEach(async () => rm(dataDirectory, { recursive: true }))

test('no services are known where `npm start` never ran', async () => {
  expect(await readLocalServices({ dataDirectory })).toEqual({})
})

test('a data directory that cannot be read is reported, and how to select another one', async () => {
  await writeFile(join(dataDirectory, 'file'), '')
  const reading = readLocalServices({ dataDirectory: join(dataDirectory, 'file') })
  await expect(reading).rejects.toThrow(
    /^cannot read .*local\.json: .*; SLUICE_DATA_DIR selects another folder$/,
  )
})

test.each(['{"apiUrl":', 'null', ''])('a broken local.json is reported: %j', async (content) => {
  await writeFile(join(dataDirectory, 'local.json'), content)
  await expect(readLocalServices({ dataDirectory })).rejects.toThrow('local.json is not a valid JSON object')
})

test('a data folder that cannot be read is reported with its setting', async () => {
  const file = join(dataDirectory, 'file')
  await writeFile(file, '')
  await expect(readLocalServices({ dataDirectory: file })).rejects.toThrow(
    /is not a directory.*SLUICE_DATA_DIR/,
  )
})
