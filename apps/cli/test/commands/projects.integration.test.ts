import { afterAll, expect, test } from 'vitest'
import { run } from '../../src/run.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const { context, sluice, deleteRedisKeys } = testInstallation()
afterAll(deleteRedisKeys)

test('a project is created and listed', async () => {
  expect(await sluice('projects', 'create', 'shop', '--retention-days', '7')).toContain(
    'Created the project shop',
  )
  expect(jsonLines(await sluice('projects', 'list', '--json'))).toMatchObject([
    { id: 'shop', enabled: true, retentionDays: 7 },
  ])
  expect(await sluice('projects', 'list')).toMatch(/^PROJECT .*\nshop +enabled +7 days /)
})

test('rate limits are changed one by one, listed, and reset to the default', async () => {
  await sluice('projects', 'create', 'limited')
  const listed = async (): Promise<string | undefined> => {
    const [headings = '', ...rows] = (await sluice('projects', 'list')).split('\n')
    expect(headings).toMatch(/ CREATED +ENTRIES\/S +BURST +BYTES\/S +BURST$/)
    const row = rows.find((each) => each.startsWith('limited '))
    return row?.replace(/^.*Z +/, '').replaceAll(/ +/g, ' ')
  }
  expect(await listed()).toBe('default default default default')
  const flags = ['--entries-per-second', '1000', '--burst-entries', '5000', '--bytes-per-second', 'unlimited']
  expect(await sluice('projects', 'update', 'limited', ...flags)).toBe(
    'Limits of the project limited: entries per second 1000, burst 5000; bytes per second unlimited, burst default.\n',
  )
  expect(await listed()).toBe('1000 5000 unlimited default')
  await sluice('projects', 'update', 'limited', '--burst-entries', 'default')
  expect(jsonLines(await sluice('projects', 'list', '--json'))).toContainEqual(
    expect.objectContaining({ id: 'limited', limits: { entriesPerSecond: 1000, bytesPerSecond: 0 } }),
  )
})

test('a project is disabled and enabled', async () => {
  await sluice('projects', 'create', 'paused')
  expect(await sluice('projects', 'disable', 'paused')).toContain('Disabled the project paused')
  expect(await sluice('projects', 'list')).toMatch(/^paused +disabled /m)
  expect(await sluice('projects', 'enable', 'paused')).toContain('Enabled the project paused')
  expect(await sluice('projects', 'list')).toMatch(/^paused +enabled /m)
})

test('a project is deleted with --yes only, and its id is kept', async () => {
  await sluice('projects', 'create', 'doomed')
  await sluice('keys', 'create', '--project', 'doomed')
  const unsure = context()
  expect(await run(['projects', 'delete', 'doomed'], unsure)).toBe(1)
  expect(unsure.written.stderr).toBe(
    'sluice: this would permanently delete the project doomed and its key; its rows would stay until they expire. Pass --yes to confirm\n',
  )
  expect(await sluice('projects', 'list')).toContain('doomed')
  expect(await sluice('projects', 'delete', 'doomed', '--yes')).toContain('Its rows stay until they expire')
  expect(await sluice('projects', 'list')).not.toContain('doomed')
  const again = context()
  expect(await run(['projects', 'create', 'doomed'], again)).toBe(1)
  expect(again.written.stderr).toContain('its id is free again on')
})

test.each([
  [['projects', 'create', 'Not-Allowed'], 'a project id has'],
  [['projects', 'create', 'odd', '--retention-days', '5'], 'the retention must be one of'],
  [['projects', 'update', 'nowhere', '--burst-entries', '5'], 'there is no project nowhere'],
  [
    ['projects', 'update', 'odd', '--bytes-per-second', '5'],
    'bytesPerSecond must be a whole number from 1024',
  ],
  [['projects', 'disable', 'nowhere'], 'there is no project nowhere'],
  [['projects', 'enable', 'nowhere'], 'there is no project nowhere'],
  [['projects', 'delete', 'nowhere', '--yes'], 'there is no project nowhere'],
])('a rejected command reports the reason: %j', async (args, reason) => {
  const used = context()
  expect(await run(args, used)).toBe(1)
  expect(used.written.stderr).toContain(`sluice: ${reason}`)
})

test('the help lists the retentions that the registry allows', async () => {
  const used = context()
  expect(await run(['projects', 'create', 'any', '--retention-days', '5'], used)).toBe(1)
  const [, allowed = 'none'] = /must be one of (.*) days/.exec(used.written.stderr) ?? []
  const help = await sluice('projects', 'create', '--help')
  expect(help.replaceAll(/\s+/g, ' ')).toContain(allowed)
})
