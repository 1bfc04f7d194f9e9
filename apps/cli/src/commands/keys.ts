import type { ApiKeyRecord, Scope } from '@sluice/projects'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { painter, table } from '../terminal.ts'
import { JSON_OPTION, list, type RedisFlags, withRedisOptions } from './options.ts'

/** A day: a deployment of every sender fits in it, and nobody forgets it for long. */
const OVERLAP_DEFAULT = '24h'

export function addKeysCommands(program: Command, context: Context): void {
  const keys = program.command('keys').description("the API keys of a project's senders")

  withRedisOptions(keys.command('create'))
    .description('make a key; it is shown this once')
    .requiredOption('--project <id>', 'the project that receives what is sent with the key')
    .option('--name <text>', 'what the key is for')
    .option('--scope <scope>', 'what it may do, ingest or read; may be repeated (ingest alone)', scope)
    .option('--expires-in <time>', 'how long it is good, as 12h or 90d; for ever, if it is left out')
    .option('--expires-at <time>', 'until when it is good, as an ISO 8601 time')
    .option(...JSON_OPTION)
    .action((options: CreateOptions) => createKey(options, context))

  withRedisOptions(keys.command('list'))
    .description("show a project's keys, revoked ones included")
    .requiredOption('--project <id>')
    .option(...JSON_OPTION)
    .action((options: ListOptions) => listKeys(options, context))

  withRedisOptions(keys.command('rotate'))
    .description(
      'make a key in place of another one, which goes on for a while; the new one is shown this once',
    )
    .argument('<key-id>', 'as sluice keys list shows it')
    .option('--overlap <time>', 'how long the old key goes on, as 30m or 7d', OVERLAP_DEFAULT)
    .option(...JSON_OPTION)
    .action((keyId: string, options: RotateOptions) => rotateKey(keyId, options, context))

  withRedisOptions(keys.command('revoke'))
    .description('make a key useless, for ever')
    .argument('<key-id>', 'as sluice keys list shows it')
    .action((keyId: string, options: RedisFlags) => revokeKey(keyId, options, context))
}

interface CreateOptions extends RedisFlags {
  project: string
  name?: string
  scope?: readonly Scope[]
  expiresIn?: string
  expiresAt?: string
  json?: true
}

async function createKey(options: CreateOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry, parseExpiry } = await loadRegistry()
  const { project, name, scope: scopes } = options
  const expiresAt = parseExpiry(options, context.nowMs())
  const { key, record } = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.createKey(project, {
      ...(name === undefined ? {} : { name }),
      ...(scopes === undefined ? {} : { scopes }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    }),
  )
  if (options.json) await context.stdout.write(`${JSON.stringify({ key, ...record })}\n`)
  else await showKey(key, `${describe(record)}.`, context)
}

interface RotateOptions extends RedisFlags {
  overlap: string
  json?: true
}

async function rotateKey(keyId: string, options: RotateOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry, parseLength } = await loadRegistry()
  const overlapMs = parseLength('--overlap', options.overlap)
  const { key, record, replaced } = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.rotateKey(keyId, overlapMs),
  )
  if (options.json) await context.stdout.write(`${JSON.stringify({ key, ...record, replaced })}\n`)
  else {
    const end = `${replaced.id} goes on until ${replaced.expiresAt ?? 'it is revoked'}.`
    await showKey(key, `${describe(record)}, in place of ${keyId}; ${end}`, context)
  }
}

/** The key alone goes to the standard output, so that KEY=$(sluice keys create …) works. */
async function showKey(key: string, sentence: string, context: Context): Promise<void> {
  const shownOnce = 'It is not shown again; keep it where only the sender can read it:'
  await context.stderr.write(`${sentence} ${shownOnce}\n`)
  await context.stdout.write(`${key}\n`)
}

function describe({ id, projectId, expiresAt }: ApiKeyRecord): string {
  return `The key ${id} of the project ${projectId}${expiresAt === undefined ? '' : `, valid until ${expiresAt}`}`
}

interface ListOptions extends RedisFlags {
  project: string
  json?: true
}

async function listKeys(options: ListOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry, keyState } = await loadRegistry()
  const records = await withRegistry(await redisAccess(options, context), async (registry) => {
    if ((await registry.findProject(options.project)) === undefined) {
      throw new CliError(`there is no project ${options.project}`)
    }
    return registry.listKeys(options.project)
  })
  const nowMs = context.nowMs()
  if (options.json) {
    const lines = records.map((record) => JSON.stringify({ ...record, state: keyState(record, nowMs) }))
    await context.stdout.write(lines.map((line) => `${line}\n`).join(''))
  } else if (records.length === 0) {
    await context.stderr.write(`The project ${options.project} has no keys; sluice keys create makes one.\n`)
  } else {
    const headings = ['KEY', 'STATE', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'NAME']
    const rows = records.map((record) => keyCells(record, keyState(record, nowMs)))
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

function keyCells(record: ApiKeyRecord, state: string): string[] {
  const { id, scopes, createdAt, expiresAt = 'never', lastUsedAt = 'never', name } = record
  return [id, state, scopes.join(' '), createdAt, expiresAt, lastUsedAt, name]
}

async function revokeKey(keyId: string, options: RedisFlags, context: Context): Promise<void> {
  const { redisAccess, withRegistry } = await loadRegistry()
  const record = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.revokeKey(keyId),
  )
  await context.stdout.write(`The key ${record.id} of the project ${record.projectId} is revoked.\n`)
}

/** The command's modules load before they know whether they are wanted, so the package of the registry loads later. */
async function loadRegistry() {
  const [{ redisAccess }, { withRegistry }, { parseExpiry, parseLength }, { keyState }] = await Promise.all([
    import('../connections.ts'),
    import('../registry-session.ts'),
    import('../times.ts'),
    import('@sluice/projects'),
  ])
  return { redisAccess, withRegistry, parseExpiry, parseLength, keyState }
}

function scope(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const named = list(text).map((value): Scope => {
    if (value === 'ingest' || value === 'read') return value
    throw new InvalidArgumentError('A scope is ingest or read.')
  })
  return [...new Set([...before, ...named])]
}
