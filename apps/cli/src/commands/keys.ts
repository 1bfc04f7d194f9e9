import type { ApiKeyRecord } from '@sluice/projects'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { painter, table } from '../terminal.ts'
import { JSON_OPTION, type RedisFlags, withRedisOptions } from './options.ts'

export function addKeysCommands(program: Command, context: Context): void {
  const keys = program.command('keys').description("the API keys of a project's senders")

  withRedisOptions(keys.command('create'))
    .description('make a key; it is shown this once')
    .requiredOption('--project <id>', 'the project that receives what is sent with the key')
    .option('--name <text>', 'what the key is for')
    .option('--expires <when>', 'a time from now (90d, 12h) or an ISO 8601 time; never, if it is left out')
    .option(...JSON_OPTION)
    .action((options: CreateOptions) => createKey(options, context))

  withRedisOptions(keys.command('list'))
    .description("show a project's keys, revoked ones included")
    .requiredOption('--project <id>')
    .option(...JSON_OPTION)
    .action((options: ListOptions) => listKeys(options, context))

  withRedisOptions(keys.command('revoke'))
    .description('make a key useless, for ever')
    .argument('<key-id>', 'as sluice keys list shows it')
    .action((keyId: string, options: RedisFlags) => revokeKey(keyId, options, context))
}

interface CreateOptions extends RedisFlags {
  project: string
  name?: string
  expires?: string
  json?: true
}

async function createKey(options: CreateOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry, parseExpiry } = await loadRegistry()
  const { project, name, expires } = options
  const expiresAt = expires === undefined ? undefined : parseExpiry(expires, context.nowMs())
  const { key, record } = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.createKey(project, {
      ...(name === undefined ? {} : { name }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    }),
  )
  if (options.json) {
    await context.stdout.write(`${JSON.stringify({ key, ...record })}\n`)
    return
  }
  // The key alone goes to the standard output, so that KEY=$(sluice keys create …) works.
  await context.stderr.write(
    `The key ${record.id} of the project ${record.projectId}` +
      `${record.expiresAt === undefined ? '' : `, valid until ${record.expiresAt}`}. ` +
      'It is not shown again; keep it where only the sender can read it:\n',
  )
  await context.stdout.write(`${key}\n`)
}

interface ListOptions extends RedisFlags {
  project: string
  json?: true
}

async function listKeys(options: ListOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry } = await loadRegistry()
  const records = await withRegistry(await redisAccess(options, context), async (registry) => {
    if ((await registry.findProject(options.project)) === undefined) {
      throw new CliError(`there is no project ${options.project}`)
    }
    return registry.listKeys(options.project)
  })
  if (options.json) {
    await context.stdout.write(records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  } else if (records.length === 0) {
    await context.stderr.write(`The project ${options.project} has no keys; sluice keys create makes one.\n`)
  } else {
    const headings = ['KEY', 'STATE', 'SCOPES', 'CREATED', 'EXPIRES', 'NAME']
    const rows = records.map((record) => keyCells(record, context.nowMs()))
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

function keyCells(record: ApiKeyRecord, nowMs: number): string[] {
  const { id, scopes, createdAt, expiresAt = 'never', name } = record
  return [id, keyState(record, nowMs), scopes.join(' '), createdAt, expiresAt, name]
}

function keyState({ revokedAt, expiresAt }: ApiKeyRecord, nowMs: number): string {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}

async function revokeKey(keyId: string, options: RedisFlags, context: Context): Promise<void> {
  const { redisAccess, withRegistry } = await loadRegistry()
  const record = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.revokeKey(keyId),
  )
  await context.stdout.write(`The key ${record.id} of the project ${record.projectId} is revoked.\n`)
}

async function loadRegistry() {
  const [{ redisAccess }, { withRegistry }, { parseExpiry }] = await Promise.all([
    import('../connections.ts'),
    import('../registry-session.ts'),
    import('../times.ts'),
  ])
  return { redisAccess, withRegistry, parseExpiry }
}
