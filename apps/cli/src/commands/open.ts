import { hashApiKey, isWellFormedApiKey, Sessions } from '@sluice/projects'
import { installationNames } from '@sluice/runtime'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { withConnections, withExamples } from '../options.ts'
import { withRedis } from '../redis-session.ts'
import { type Flags, httpAccess, redisAccess } from '../service-access.ts'

export function define(command: Command, context: Context): void {
  withExamples(withConnections(command, 'query', 'redis'), ['open', 'signed in']).action(
    async (flags: Flags) => {
      const { url, key } = await httpAccess('query', flags, context)
      if (!isWellFormedApiKey(key)) throw new CliError('SLUICE_READ_KEY is not an API key')
      const access = await redisAccess(flags, context)
      const { registryPrefix } = installationNames(access.prefix)
      const token = await withRedis(access, (redis) =>
        new Sessions(redis, registryPrefix).createLink(hashApiKey(key)),
      )
      const link = `${url}/open?token=${token}`
      context.browse(link)
      await context.stderr.write(
        'If no browser opens, open this link within two minutes. It can be used once.\n',
      )
      await context.stdout.write(`${link}\n`)
    },
  )
}
