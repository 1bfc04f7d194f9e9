import type { Scope } from '@sluice/projects'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { SLUICE } from '../program-name.ts'
import type { CreateKeyOptions, ListKeysOptions, RotateKeyOptions } from '../registry/keys.ts'
import type { RedisFlags } from '../service-access.ts'
import { examples } from './help.ts'
import { JSON_OPTION, list, withRedisOptions } from './options.ts'

const KEY_ID = `key id, as listed by \`${SLUICE} keys list\``
/** A day: long enough to deploy the new key to every sender, and short enough not to be forgotten. */
const OVERLAP_DEFAULT = '24h'

const load = () => import('../registry/keys.ts')

export function addKeysCommands(program: Command, context: Context): void {
  const keys = program
    .command('keys')
    .description("manage a project's API keys")
    .addHelpText(
      'after',
      examples(
        ['keys create --project shop --name checkout', 'create a key and print it'],
        ['keys list --project shop', 'list the keys, and when they were last used'],
      ),
    )

  withRedisOptions(
    keys
      .command('create')
      .description('create a key and print it; it cannot be shown again')
      .addHelpText(
        'after',
        examples(
          ['keys create --project shop --name checkout --expires-in 90d', 'a key for 90 days'],
          ['keys create --project shop --scope ingest,read --json', 'a key with two scopes, and its record'],
        ),
      )
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
      .addHelpText(
        'after',
        examples(
          ['keys list --project shop', 'as a table'],
          ['keys list --project shop --json', 'for a program'],
        ),
      )
      .requiredOption('--project <id>', 'project that the keys belong to')
      .option(...JSON_OPTION),
  ).action(async (options: ListKeysOptions) => (await load()).listKeys(options, context))

  withRedisOptions(
    keys
      .command('rotate')
      .description('create a replacement for a key and print it; the old key stays valid for a while')
      .addHelpText(
        'after',
        examples(['keys rotate key_0123456789abcdef --overlap 24h', 'the old key stays valid for a day']),
      )
      .argument('<key-id>', KEY_ID)
      .option('--overlap <time>', 'how long the old key stays valid, such as 30m or 7d', OVERLAP_DEFAULT)
      .option(...JSON_OPTION),
  ).action(async (keyId: string, options: RotateKeyOptions) =>
    (await load()).rotateKey(keyId, options, context),
  )

  withRedisOptions(
    keys
      .command('revoke')
      .description('permanently revoke a key')
      .addHelpText(
        'after',
        examples(['keys revoke key_0123456789abcdef', 'takes effect within five seconds']),
      )
      .argument('<key-id>', KEY_ID),
  ).action(async (keyId: string, options: RedisFlags) => (await load()).revokeKey(keyId, options, context))
}

function scopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const added = list(text).map((value): Scope => {
    if (value === 'ingest' || value === 'read') return value
    throw new InvalidArgumentError('A scope is ingest or read.')
  })
  return [...new Set([...before, ...added])]
}
