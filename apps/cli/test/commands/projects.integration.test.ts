import { Readable } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { run } from '../../src/run.ts'
import type { FakeContext } from '../fake-context.ts'
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

test('rate limits are changed one by one, and reset to the default', async () => {
  await sluice('projects', 'create', 'limited')
  const flags = ['--entries-per-second', '1000', '--burst-entries', '5000', '--bytes-per-second', 'unlimited']
  expect(await sluice('projects', 'update', 'limited', ...flags)).toBe(
    'Limits of the project limited: entries per second 1000, burst 5000; bytes per second unlimited, burst default.\n',
  )
  await sluice('projects', 'update', 'limited', '--burst-entries', 'default')
  expect(jsonLines(await sluice('projects', 'list', '--json'))).toContainEqual(
    expect.objectContaining({ id: 'limited', limits: { entriesPerSecond: 1000, bytesPerSecond: 0 } }),
  )
})

test.each([[[]], [['--entries-per-second', 'many']], [['--entries-per-second', '-1']]])(
  'rate limits are not changed by invalid flags: %j',
  async (flags) => {
    const used = context()
    expect(await run(['projects', 'update', 'limited', ...flags], used)).toBe(2)
    expect(used.written.stderr).not.toBe('')
  },
)

test('the list of projects shows their rate limits', async () => {
  await sluice('projects', 'create', 'listed')
  const limits = async (): Promise<string | undefined> => {
    const [headings = '', ...rows] = (await sluice('projects', 'list')).split('\n')
    expect(headings).toMatch(/ CREATED +ENTRIES\/S +BURST +BYTES\/S +BURST$/)
    return rows
      .find((row) => row.startsWith('listed '))
      ?.replace(/^.*Z +/, '')
      .replaceAll(/ +/g, ' ')
  }
  expect(await limits()).toBe('default default default default')
  const flags = ['--entries-per-second', '1000', '--burst-entries', '5000', '--bytes-per-second', 'unlimited']
  await sluice('projects', 'update', 'listed', ...flags)
  expect(await limits()).toBe('1000 5000 unlimited default')
})

test.each([
  ['--entries-per-second', 'lots', 'It must be a whole number from 1 to 1000000000, unlimited or default.'],
  ['--burst-entries', 'unlimited', 'It must be a whole number from 1 to 1000000000, or default.'],
  ['--bytes-per-second', '1k', 'It must be a whole number from 1024 to 1000000000000, unlimited or default.'],
  ['--burst-bytes', '-1', 'It must be a whole number from 1024 to 1000000000000, or default.'],
])('an invalid limit is reported with all accepted values: %s %s', async (flag, value, reason) => {
  const used = context()
  expect(await run(['projects', 'update', 'limited', flag, value], used)).toBe(2)
  expect(used.written.stderr).toContain(reason)
})

test.each([
  ['--entries-per-second', 1, 1_000_000_000],
  ['--burst-entries', 1, 1_000_000_000],
  ['--bytes-per-second', 1024, 1_000_000_000_000],
  ['--burst-bytes', 1024, 1_000_000_000_000],
])('the range of %s is that of the registry', async (flag, min, max) => {
  await sluice('projects', 'update', 'limited', flag, String(min))
  await sluice('projects', 'update', 'limited', flag, String(max))
  await sluice('projects', 'update', 'limited', flag, 'default')
  const used = context()
  expect(await run(['projects', 'update', 'limited', flag, String(max + 1)], used)).toBe(1)
})

test('a project is disabled and enabled', async () => {
  await sluice('projects', 'create', 'paused')
  expect(await sluice('projects', 'disable', 'paused')).toContain('Disabled the project paused')
  expect(await sluice('projects', 'list')).toMatch(/^paused +disabled /m)
  expect(await sluice('projects', 'enable', 'paused')).toContain('Enabled the project paused')
  expect(await sluice('projects', 'list')).toMatch(/^paused +enabled /m)
})

test('a project is deleted when the user types its id, or with --yes', async () => {
  const answering = (answer: string): FakeContext =>
    context({}, { stdin: Readable.from([answer]), stdinIsTerminal: true })
  await sluice('projects', 'create', 'doomed')
  await sluice('keys', 'create', '--project', 'doomed')
  const script = context()
  expect(await run(['projects', 'delete', 'doomed'], script)).toBe(1)
  expect(script.written.stderr).toContain('pass --yes')
  for (const answer of ['', '\n', 'y\n', 'doom\n']) {
    const unsure = answering(answer)
    expect(await run(['projects', 'delete', 'doomed'], unsure)).toBe(1)
    expect(unsure.written.stderr).toContain('not confirmed; nothing was changed')
  }
  expect(await sluice('projects', 'list')).toContain('doomed')

  const sure = answering('doomed\n')
  expect(await run(['projects', 'delete', 'doomed'], sure)).toBe(0)
  expect(sure.written.stderr).toContain('This permanently deletes the project doomed and its key.')
  expect(sure.written.stdout).toContain('Its rows stay until they expire')
  await sluice('projects', 'create', 'doomed-too')
  await sluice('projects', 'delete', 'doomed-too', '--yes')
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
