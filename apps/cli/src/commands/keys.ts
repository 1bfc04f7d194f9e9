import { type ApiKeyRecord, keyState, type Registry, type Scope, scopeNames } from '@sluice/projects'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { JSON_OPTION, SLUICE, someOf, withConnections, withExamples } from '../options.ts'
import { keysOf, withRegistry } from '../redis-session.ts'
import { type Listing, printList } from '../terminal.ts'
import { parseDuration, parseExpiry } from '../times.ts'

const KEY_ID = `key id, as listed by \`${SLUICE} keys list\``
export function define(keys: Command, context: Context): void {
  const { stdout, stderr } = context
  const withKeys = <Result>(task: (registry: Registry) => Promise<Result>): Promise<Result> =>
    withRegistry(keys.opts(), context, task)
  /** Without `--json`, only the key itself goes to stdout, for scripts: KEY=$(sluice keys create …). */
  async function printKey(made: NewKey, json: true | undefined, sentence: string): Promise<void> {
    const { key, record, ...rest } = made
    if (json) return stdout.write(`${JSON.stringify({ key, ...record, ...rest })}\n`)
    await stderr.write(`${sentence} It is not shown again; store it where only the sender can read it:\n`)
    await stdout.write(`${key}\n`)
  }
  const expiry = (value: string): Date => parseExpiry(value, context.nowMs())

  withExamples(
    withConnections(keys, 'redis'),
    ['keys create --project shop --name checkout --expires-in 90d', 'a key for 90 days'],
    ['keys create --project shop --scope ingest,read --json', 'a key with two scopes, and its record'],
    ['keys rotate key_0123456789abcdef --overlap 24h', 'the old key stays valid for a day'],
  )

  keys
    .command('create')
    .description('create a key and print it; it cannot be shown again')
    .requiredOption('--project <id>', 'project that the key belongs to')
    .option('--name <text>', 'what the key is for')
    .option(
      '--scope <scope>',
      'ingest (default), read, admin, or some of them: ingest,read',
      someOf(scopeNames),
    )
    .option('--expires-in, --expires-at <when>', 'such as 90d, or an ISO 8601 time (default: never)', expiry)
    .option(...JSON_OPTION)
    .action(async ({ project, json, scope, ...rest }: CreateOptions) => {
      const options = scope === undefined ? rest : { ...rest, scopes: scope }
      const made = await withKeys((registry) => registry.keys.create(project, options))
      await printKey(made, json, `${describeNewKey(made.record)}.`)
    })

  keys
    .command('list')
    .description(
      "list a project's keys, including revoked ones; LAST USED does not have the requests of the last minute",
    )
    .requiredOption('--project <id>', 'project that the keys belong to')
    .option(...JSON_OPTION)
    .action(async ({ project, json }: { project: string; json?: true }) => {
      const records = await withKeys((registry) => keysOf(registry, project))
      await printList(records, listingOf(project, context.nowMs()), json, context)
    })

  keys
    .command('rotate')
    .description('create a replacement for a key and print it; the old key stays valid for a while')
    .argument('<key-id>', KEY_ID)
    .option('--overlap <time>', 'how long the old key stays valid (default: 24h)', parseDuration)
    .option(...JSON_OPTION)
    .action(async (keyId: string, { overlap = 86_400_000, json }: { overlap?: number; json?: true }) => {
      const made = await withKeys((registry) => registry.keys.rotate(keyId, overlap))
      const end = `${keyId} stays valid until ${made.replaced.expiresAt ?? 'it is revoked'}.`
      await printKey(made, json, `${describeNewKey(made.record)}, to replace ${keyId}; ${end}`)
    })

  keys
    .command('revoke')
    .description('permanently revoke a key; takes effect within five seconds')
    .argument('<key-id>', KEY_ID)
    .action(async (keyId: string) => {
      const { id, projectId } = await withKeys((registry) => registry.keys.revoke(keyId))
      await stdout.write(`Revoked the key ${id} of the project ${projectId}.\n`)
    })
}

type NewKey = Awaited<ReturnType<Registry['keys']['create']>>

interface CreateOptions {
  project: string
  name?: string
  scope?: readonly Scope[]
  expiresAt?: Date
  json?: true
}

function describeNewKey({ id, projectId, scopes, expiresAt }: ApiKeyRecord): string {
  const permitted = `${scopes.length === 1 ? 'scope' : 'scopes'} ${scopes.join(', ')}`
  const expiry = expiresAt === undefined ? '' : `, valid until ${expiresAt}`
  return `Created the key ${id} of the project ${projectId} with the ${permitted}${expiry}`
}

function listingOf(project: string, nowMs: number): Listing<ApiKeyRecord> {
  return {
    headings: ['KEY', 'STATE', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'NAME'],
    cells: (key) => {
      const { id, scopes, createdAt, expiresAt = 'never', lastUsedAt = 'never', name } = key
      return [id, keyState(key, nowMs), scopes.join(' ') || 'none', createdAt, expiresAt, lastUsedAt, name]
    },
    object: (key) => ({ ...key, state: keyState(key, nowMs) }),
    empty: `The project ${project} has no keys yet. Create one with: ${SLUICE} keys create --project ${project}`,
  }
}
