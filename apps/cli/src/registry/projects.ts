import {
  type ProjectLimitChanges,
  type ProjectLimitName,
  type ProjectLimits,
  readBackup,
  writeBackup,
} from '@sluice/projects'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Context } from '../context.ts'
import { CliError, throwReadError, UsageError } from '../errors.ts'
import { SLUICE } from '../program-name.ts'
import { redisAccess, type RedisFlags } from '../service-access.ts'
import { confirm, painter, table } from '../terminal.ts'
import { convertRegistryErrors, withRegistry } from './registry-session.ts'

export interface CreateProjectOptions extends RedisFlags {
  retentionDays?: number
}

export async function createProject(
  id: string,
  options: CreateProjectOptions,
  context: Context,
): Promise<void> {
  const project = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.projects.create(id, options.retentionDays),
  )
  await context.stdout.write(
    `Created the project ${project.id}, which keeps its rows for ${project.retentionDays} days.\n` +
      `To create a key for it: ${SLUICE} keys create --project ${project.id}\n`,
  )
}

export interface ListProjectsOptions extends RedisFlags {
  json?: true
}

export async function listProjects(options: ListProjectsOptions, context: Context): Promise<void> {
  const projects = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.projects.list(),
  )
  if (options.json) {
    await context.stdout.write(projects.map((project) => `${JSON.stringify(project)}\n`).join(''))
  } else if (projects.length === 0) {
    await context.stderr.write(`There are no projects yet. Create one with: ${SLUICE} projects create\n`)
  } else {
    const rows = projects.map(({ id, enabled, retentionDays, createdAt, limits = {} }) => [
      id,
      enabled ? 'enabled' : 'disabled',
      `${retentionDays} days`,
      createdAt,
      formatLimit(limits.entriesPerSecond),
      formatLimit(limits.burstEntries),
      formatLimit(limits.bytesPerSecond),
      formatLimit(limits.burstBytes),
    ])
    const limitHeadings = ['ENTRIES/S', 'BURST', 'BYTES/S', 'BURST']
    const headings = ['PROJECT', 'STATE', 'RETENTION', 'CREATED', ...limitHeadings]
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

export async function setProjectEnabled(
  id: string,
  enabled: boolean,
  options: RedisFlags,
  context: Context,
): Promise<void> {
  await withRegistry(await redisAccess(options, context), (registry) =>
    registry.projects.setEnabled(id, enabled),
  )
  await context.stdout.write(
    enabled
      ? `Enabled the project ${id}. Its requests are accepted within five seconds.\n`
      : `Disabled the project ${id}. Its requests are rejected within five seconds.\n`,
  )
}

export interface DeleteProjectOptions extends RedisFlags {
  yes?: true
}

export async function deleteProject(
  id: string,
  options: DeleteProjectOptions,
  context: Context,
): Promise<void> {
  const access = await redisAccess(options, context)
  const keys = await withRegistry(access, async (registry) => {
    if ((await registry.projects.find(id)) === undefined) throw new CliError(`there is no project ${id}`)
    return registry.keys.list(id)
  })
  const consequence =
    `This permanently deletes the project ${id} and its ${keys.length === 1 ? 'key' : `${keys.length} keys`}. ` +
    'Its rows stay until they expire.'
  if (!options.yes) await confirm(context, consequence, id)
  // A second session: the confirmation may take minutes, and no connection stays open meanwhile.
  const idKeptUntil = await withRegistry(access, (registry) => registry.projects.delete(id))
  await context.stdout.write(
    `Deleted the project ${id}. Its rows stay until they expire; ` +
      `its id is free again on ${idKeptUntil.toISOString()}.\n`,
  )
}

/** 'default' is the limit that the API is configured with. */
export type LimitChange = number | 'unlimited' | 'default'

/** Commander derives the names of the options from their flags; they are equal to the names of the limits. */
export type UpdateProjectOptions = RedisFlags & { readonly [Name in ProjectLimitName]?: LimitChange }

/** The registry's value for an unlimited rate. */
const UNLIMITED = 0

export async function updateProject(
  id: string,
  options: UpdateProjectOptions,
  context: Context,
): Promise<void> {
  const { redisUrl: _url, prefix: _prefix, ...given } = options
  const changes: ProjectLimitChanges = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, toRegistryValue(value)]),
  )
  if (Object.keys(changes).length === 0) throw new UsageError('pass at least one limit to change')
  const project = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.projects.setLimits(id, changes),
  )
  await context.stdout.write(`${describeLimits(project.id, project.limits ?? {})}\n`)
}

function toRegistryValue(value: LimitChange): number | null {
  if (value === 'default') return null
  return value === 'unlimited' ? UNLIMITED : value
}

function describeLimits(id: string, limits: ProjectLimits): string {
  const { entriesPerSecond, burstEntries, bytesPerSecond, burstBytes } = limits
  return (
    `Limits of the project ${id}: ` +
    `entries per second ${formatLimit(entriesPerSecond)}, burst ${formatLimit(burstEntries)}; ` +
    `bytes per second ${formatLimit(bytesPerSecond)}, burst ${formatLimit(burstBytes)}.`
  )
}

function formatLimit(value: number | undefined): string {
  if (value === undefined) return 'default'
  return value === UNLIMITED ? 'unlimited' : String(value)
}

/** Writes all projects with the hashes of their keys to stdout. */
export async function exportProjects(options: RedisFlags, context: Context): Promise<void> {
  const projects = await withRegistry(await redisAccess(options, context), async (registry) => {
    const backups = []
    for (const project of await registry.projects.list())
      backups.push({ ...project, keys: await registry.keys.export(project.id) })
    return backups
  })
  await context.stdout.write(writeBackup(projects))
}

/** @param file `-` for stdin */
export async function importProjects(file: string, options: RedisFlags, context: Context): Promise<void> {
  const content = await (file === '-'
    ? text(context.stdin)
    : readFile(file, 'utf8').catch(throwReadError(file)))
  const backups = await convertRegistryErrors(() => readBackup(content))
  await withRegistry(await redisAccess(options, context), async (registry) => {
    for (const backup of backups) {
      const isImported = await registry.projects.import(backup)
      await context.stdout.write(
        isImported
          ? `Imported the project ${backup.id} with ${backup.keys.length} keys.\n`
          : `Left the project ${backup.id} as it is: it exists.\n`,
      )
    }
  })
}
