import { hashApiKey, Sessions } from '@sluice/projects'
import { connectRedis, installationNames } from '@sluice/runtime'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../../src/run.ts'
import { testInstallation } from '../installation.ts'

const { context, sluice, failing, redisUrl, prefix } = testInstallation()

test('open prints and opens a link that signs in once', async () => {
  await sluice('projects', 'create', 'shop')
  const key = (await sluice('keys', 'create', '--project', 'shop', '--scope', 'read')).trim()
  const opened: string[] = []
  const environment = { SLUICE_QUERY_URL: 'http://127.0.0.1:3001/', SLUICE_READ_KEY: key }
  const used = context(environment, { browse: (url) => opened.push(url) })
  expect(await run(['open'], used)).toBe(0)
  const [, token = ''] = /^http:\/\/127\.0\.0\.1:3001\/open\?token=(\S+)\n$/.exec(used.written.stdout) ?? []
  expect(opened).toEqual([used.written.stdout.trim()])
  expect(used.written.stderr).toContain('within two minutes')

  const redis = connectRedis(redisUrl, { failFast: false })
  onTestFinished(() => redis.disconnect())
  const sessions = new Sessions(redis, installationNames(prefix).registryPrefix)
  expect(await sessions.useLink(token)).toBe(hashApiKey(key))
  expect(await sessions.useLink(token)).toBeUndefined()
})

test('open rejects what is not a key', async () => {
  const environment = { SLUICE_QUERY_URL: 'http://127.0.0.1:3001', SLUICE_READ_KEY: 'nope' }
  expect(await failing(['open'], environment)).toBe('sluice: SLUICE_READ_KEY is not an API key\n')
})
