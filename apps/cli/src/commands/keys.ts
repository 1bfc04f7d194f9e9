import { type ApiKeyRecord, keyState, type Scope } from '@sluice/projects'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { JSON_OPTION, list, SLUICE, withExamples, withRedisOptions } from '../options.ts'
import { keysOf, withRegistry } from '../registry-session.ts'
import type { RedisFlags } from '../service-access.ts'
import { type Listing, printList } from '../terminal.ts'
import { parseExpiry, requireDurationMs } from '../times.ts'

const KEY_ID = `key id, as listed by \`${SLUICE} keys list\``
/** A day: long enough to deploy the new key to every sender, and short enough not to be forgotten. */
const OVERLAP_DEFAULT = '24h'

export function define(keys: Command, context: Context): void {
  withExamples(
    keys,
    ['keys create --project shop --name checkout', 'create a key and print it'],
    ['keys list --project shop', 'list the keys, and when they were last used'],
  )

  withExamples(
    withRedisOptions(
      keys
        .command('create')
        .description('create a key and print it; it cannot be shown again')
        .requiredOption('--project <id>', 'project that the key belongs to')
        .option('--name <text>', 'what the key is for')
        .option(
          '--scope <scope>',
          'ingest or read; comma-separated or repeated (default: ingest)',
          parseScopes,
        )
        .option('--expires-in <time>', 'lifetime, such as 12h or 90d (default: the key never expires)')
        .option('--expires-at <time>', 'expiry, as an ISO 8601 time')
        .option(...JSON_OPTION),
    ),
    ['keys create --project shop --name checkout --expires-in 90d', 'a key for 90 days'],
    ['keys create --project shop --scope ingest,read --json', 'a key with two scopes, and its record'],
  ).action((options: CreateKeyOptions) => createKey(options, context))

  withExamples(
    withRedisOptions(
      keys
        .command('list')
        .description("list a project's keys, including revoked ones")
        .requiredOption('--project <id>', 'project that the keys belong to')
        .option(...JSON_OPTION),
    ),
    ['keys list --project shop', 'as a table'],
    ['keys list --project shop --json', 'for a program'],
  ).action((options: ListKeysOptions) => listKeys(options, context))

  withExamples(
    withRedisOptions(
      keys
        .command('rotate')
        .description('create a replacement for a key and print it; the old key stays valid for a while')
        .argument('<key-id>', KEY_ID)
        .option('--overlap <time>', 'how long the old key stays valid, such as 30m or 7d', OVERLAP_DEFAULT)
        .option(...JSON_OPTION),
    ),
    ['keys rotate key_0123456789abcdef --overlap 24h', 'the old key stays valid for a day'],
  ).action((keyId: string, options: RotateKeyOptions) => rotateKey(keyId, options, context))

  withExamples(
    withRedisOptions(
      keys.command('revoke').description('permanently revoke a key').argument('<key-id>', KEY_ID),
    ),
    ['keys revoke key_0123456789abcdef', 'takes effect within five seconds'],
  ).action((keyId: string, options: RedisFlags) => revokeKey(keyId, options, context))
}

function parseScopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const added = list(text).map((value): Scope => {
    if (value === 'ingest' || value === 'read') return value
    throw new InvalidArgumentError('A scope is ingest or read.')
  })
  return [...new Set([...before, ...added])]
}

interface CreateKeyOptions extends RedisFlags {
  project: string
  name?: string
  scope?: readonly Scope[]
  expiresIn?: string
  expiresAt?: string
  json?: true
}

async function createKey(options: CreateKeyOptions, context: Context): Promise<void> {
  const { project, name, scope: scopes } = options
  const expiresAt = parseExpiry(options, context.nowMs())
  const { key, record } = await withRegistry(options, context, (registry) =>
    registry.keys.create(project, {
      ...(name === undefined ? {} : { name }),
      ...(scopes === undefined ? {} : { scopes }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    }),
  )
  if (options.json) await context.stdout.write(`${JSON.stringify({ key, ...record })}\n`)
  else await printKey(key, `${describeNewKey(record)}.`, context)
}

interface RotateKeyOptions extends RedisFlags {
  overlap: string
  json?: true
}

async function rotateKey(keyId: string, options: RotateKeyOptions, context: Context): Promise<void> {
  const overlapMs = requireDurationMs('--overlap', options.overlap)
  const { key, record, replaced } = await withRegistry(options, context, (registry) =>
    registry.keys.rotate(keyId, overlapMs),
  )
  if (options.json) await context.stdout.write(`${JSON.stringify({ key, ...record, replaced })}\n`)
  else {
    const overlap = `${replaced.id} stays valid until ${replaced.expiresAt ?? 'it is revoked'}.`
    await printKey(key, `${describeNewKey(record)}, to replace ${keyId}; ${overlap}`, context)
  }
}

/** Only the key itself goes to stdout, for scripts: KEY=$(sluice keys create …). */
async function printKey(key: string, sentence: string, context: Context): Promise<void> {
  const advice = 'It is not shown again; store it where only the sender can read it:'
  await context.stderr.write(`${sentence} ${advice}\n`)
  await context.stdout.write(`${key}\n`)
}

function describeNewKey({ id, projectId, scopes, expiresAt }: ApiKeyRecord): string {
  const permitted = `${scopes.length === 1 ? 'scope' : 'scopes'} ${scopes.join(', ')}`
  const expiry = expiresAt === undefined ? '' : `, valid until ${expiresAt}`
  return `Created the key ${id} of the project ${projectId} with the ${permitted}${expiry}`
}

interface ListKeysOptions extends RedisFlags {
  project: string
  json?: true
}

async function listKeys({ project, json, ...flags }: ListKeysOptions, context: Context): Promise<void> {
  const keys = await withRegistry(flags, context, (registry) => keysOf(registry, project))
  const stateOf = (key: ApiKeyRecord): string => keyState(key, context.nowMs())
  const listing: Listing<ApiKeyRecord> = {
    headings: ['KEY', 'STATE', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'NAME'],
    cells: (key) => {
      const { id, scopes, createdAt, expiresAt = 'never', lastUsedAt = 'never', name } = key
      return [id, stateOf(key), scopes.join(' ') || 'none', createdAt, expiresAt, lastUsedAt, name]
    },
    object: (key) => ({ ...key, state: stateOf(key) }),
    empty: `The project ${project} has no keys yet. Create one with: ${SLUICE} keys create --project ${project}`,
  }
  await printList(keys, listing, json, context)
}

async function revokeKey(keyId: string, options: RedisFlags, context: Context): Promise<void> {
  const { id, projectId } = await withRegistry(options, context, (registry) => registry.keys.revoke(keyId))
  await context.stdout.write(`Revoked the key ${id} of the project ${projectId}.\n`)
}
