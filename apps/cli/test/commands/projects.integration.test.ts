import { expect, test } from 'vitest'
import { testInstallation } from '../installation.ts'

const { sluice, objects, failing } = testInstallation()

test('rate limits are changed one by one, listed, and reset to the default', async () => {
  expect(await sluice('projects', 'create', 'shop', '--retention-days', '7')).toContain('Created the project')
  const flags = ['--entries-per-second', '1000', '--burst-entries', '5000', '--bytes-per-second', 'unlimited']
  expect(await sluice('projects', 'update', 'shop', ...flags)).toBe(
    'Limits of the project shop: entries per second 1000, burst 5000; bytes per second unlimited, burst default.\n',
  )
  expect(await sluice('projects', 'list')).toMatch(
    /^PROJECT +STATE .* CREATED +ENTRIES\/S +BURST +BYTES\/S +BURST\nshop +enabled +7 days .*Z +1000 +5000 +unlimited +default\n/,
  )
  await sluice('projects', 'update', 'shop', '--burst-entries', 'default')
  expect(await objects('projects', 'list')).toMatchObject([
    { id: 'shop', enabled: true, retentionDays: 7, limits: { entriesPerSecond: 1000, bytesPerSecond: 0 } },
  ])
})

test('the retention is changed for rows that are accepted from now on', async () => {
  await sluice('projects', 'create', 'kept')
  expect(await sluice('projects', 'update', 'kept', '--retention-days', '7')).toMatch(
    /^Retention of the project kept: 7 days for new rows\. Stored rows keep their day of expiry\.\n/,
  )
  expect(await objects('projects', 'list')).toContainEqual(
    expect.objectContaining({ id: 'kept', retentionDays: 7, rowsUntil: expect.any(String) as string }),
  )
  expect(await failing(['projects', 'update', 'kept', '--retention-days', '8'])).toContain('must be one of')
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
  expect(await failing(['projects', 'delete', 'doomed'])).toContain(
    'this would permanently delete the project doomed and its key; its rows would stay until they expire. Pass --yes',
  )
  expect(await sluice('projects', 'list')).toContain('doomed')
  await sluice('projects', 'delete', 'doomed', '--yes')
  expect(await sluice('projects', 'list')).not.toContain('doomed')
  expect(await failing(['projects', 'create', 'doomed'])).toContain('its id is free again on')
})

test.each([
  [['create', 'Not-Allowed'], 'a project id has'],
  [['update', 'nowhere', '--burst-entries', '5'], 'there is no project nowhere'],
  [['update', 'nowhere', '--bytes-per-second', '5'], 'bytesPerSecond must be a whole number from 1024'],
  [['disable', 'nowhere'], 'there is no project nowhere'],
  [['delete', 'nowhere', '--yes'], 'there is no project nowhere'],
])('a rejected command reports the reason: projects %j', async (args, reason) => {
  expect(await failing(['projects', ...args])).toContain(`sluice: ${reason}`)
})

test('the help lists the retentions that the registry allows', async () => {
  const stderr = await failing(['projects', 'create', 'any', '--retention-days', '5'])
  const [, allowed = 'none'] = /the retention must be one of (.*) days/.exec(stderr) ?? []
  const help = await sluice('projects', 'create', '--help')
  expect(help.replaceAll(/\s+/g, ' ')).toContain(allowed)
})
