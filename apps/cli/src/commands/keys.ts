import type { Scope } from '@sluice/projects'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import type { CreateKeyOptions, ListKeysOptions, RotateKeyOptions } from '../registry/keys.ts'
import type { RedisFlags } from '../service-access.ts'
import { JSON_OPTION, list, withRedisOptions } from './options.ts'

const KEY_ID = 'key id, as listed by `sluice keys list`'
/** A day: long enough to deploy the new key to every sender, and short enough not to be forgotten. */
const OVERLAP_DEFAULT = '24h'

const load = () => import('../registry/keys.ts')

export function addKeysCommands(program: Command, context: Context): void {
  const keys = program.command('keys').description("manage a project's API keys")

  withRedisOptions(
    keys
      .command('create')
      .description('create a key and print it; it cannot be shown again')
      .requiredOption('--project <id>', 'project that the key belongs to')
      .option('--name <text>', 'what the key is for')
      .option('--scope <scope>', 'ingest or read; comma-separated or repeated (default: ingest)', scopes)
      .option('--expires-in <time>', 'lifetime, such as 12h or 90d (default: the key never expires)')
      .option('--expires-at <time>', 'expiry, as an ISO 8601 time')
      .option(...JSON_OPTION),
  ).action(async (options: CreateKeyOptions) => (await load()).createKey(options, context))

  withRedisOptions(
    keys
      .command('list')
      .description("list a project's keys, including revoked ones")
      .requiredOption('--project <id>', 'project that the keys belong to')
      .option(...JSON_OPTION),
  ).action(async (options: ListKeysOptions) => (await load()).listKeys(options, context))

  withRedisOptions(
    keys
      .command('rotate')
      .description('create a replacement for a key and print it; the old key stays valid for a while')
      .argument('<key-id>', KEY_ID)
      .option('--overlap <time>', 'how long the old key stays valid, such as 30m or 7d', OVERLAP_DEFAULT)
      .option(...JSON_OPTION),
  ).action(async (keyId: string, options: RotateKeyOptions) =>
    (await load()).rotateKey(keyId, options, context),
  )

  withRedisOptions(
    keys.command('revoke').description('permanently revoke a key').argument('<key-id>', KEY_ID),
  ).action(async (keyId: string, options: RedisFlags) => (await load()).revokeKey(keyId, options, context))
}

function scopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const added = list(text).map((value): Scope => {
    if (value === 'ingest' || value === 'read') return value
    throw new InvalidArgumentError('A scope is ingest or read.')
  })
  return [...new Set([...before, ...added])]
}
