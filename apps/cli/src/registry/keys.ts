import { type ApiKeyRecord, keyState, type Scope } from '@sluice/projects'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { SLUICE } from '../program-name.ts'
import { redisAccess, type RedisFlags } from '../service-access.ts'
import { painter, table } from '../terminal.ts'
import { parseExpiry, requireDurationMs } from '../times.ts'
import { withRegistry } from './registry-session.ts'

export interface CreateKeyOptions extends RedisFlags {
  project: string
  name?: string
  scope?: readonly Scope[]
  expiresIn?: string
  expiresAt?: string
  json?: true
}

export async function createKey(options: CreateKeyOptions, context: Context): Promise<void> {
  const { project, name, scope: scopes } = options
  const expiresAt = parseExpiry(options, context.nowMs())
  const { key, record } = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.keys.create(project, {
      ...(name === undefined ? {} : { name }),
      ...(scopes === undefined ? {} : { scopes }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    }),
  )
  if (options.json) await context.stdout.write(`${JSON.stringify({ key, ...record })}\n`)
  else await printKey(key, `${describeNewKey(record)}.`, context)
}

export interface RotateKeyOptions extends RedisFlags {
  overlap: string
  json?: true
}

export async function rotateKey(keyId: string, options: RotateKeyOptions, context: Context): Promise<void> {
  const overlapMs = requireDurationMs('--overlap', options.overlap)
  const { key, record, replaced } = await withRegistry(await redisAccess(options, context), (registry) =>
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

export interface ListKeysOptions extends RedisFlags {
  project: string
  json?: true
}

export async function listKeys(options: ListKeysOptions, context: Context): Promise<void> {
  const records = await withRegistry(await redisAccess(options, context), async (registry) => {
    if ((await registry.projects.find(options.project)) === undefined) {
      throw new CliError(`there is no project ${options.project}`)
    }
    return registry.keys.list(options.project)
  })
  const nowMs = context.nowMs()
  if (options.json) {
    const lines = records.map((record) => JSON.stringify({ ...record, state: keyState(record, nowMs) }))
    await context.stdout.write(lines.map((line) => `${line}\n`).join(''))
  } else if (records.length === 0) {
    await context.stderr.write(
      `The project ${options.project} has no keys yet. ` +
        `Create one with: ${SLUICE} keys create --project ${options.project}\n`,
    )
  } else {
    const headings = ['KEY', 'STATE', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'NAME']
    const rows = records.map((record) => tableRow(record, keyState(record, nowMs)))
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

function tableRow(record: ApiKeyRecord, state: string): string[] {
  const { id, scopes, createdAt, expiresAt = 'never', lastUsedAt = 'never', name } = record
  return [id, state, scopes.length === 0 ? 'none' : scopes.join(' '), createdAt, expiresAt, lastUsedAt, name]
}

export async function revokeKey(keyId: string, options: RedisFlags, context: Context): Promise<void> {
  const record = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.keys.revoke(keyId),
  )
  await context.stdout.write(`Revoked the key ${record.id} of the project ${record.projectId}.\n`)
}
