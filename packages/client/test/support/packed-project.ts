import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../../', import.meta.url))

export interface PackedProject {
  readonly path: string
  /** Only this knows which folder to remove: a path computed from `path` could be that of the repository. */
  readonly remove: () => Promise<void>
}

/**
 * A project with packages of this repository, installed from their archives as they would be published. Nothing in the repository is
 * changed.
 *
 * @param names folders in packages/, each after those that it depends on
 */
export async function installPacked(...names: string[]): Promise<PackedProject> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'packed-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true })
  try {
    const archives = await packAll(join(folder, 'repository'), names)
    const path = join(folder, 'project')
    await mkdir(path)
    await writeFile(join(path, 'package.json'), '{"name":"project","private":true,"type":"module"}')
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...archives], { cwd: path })
    return { path, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Packages whose sources are copied into others. */
const BUNDLED = ['records', 'schema']

const isCopied = (path: string): boolean => !/\/(test|node_modules|dist)$/.test(path)

/** Packs copies of the packages, since `npm pack` changes their manifests for a moment. */
async function packAll(repository: string, names: readonly string[]): Promise<string[]> {
  for (const name of [...BUNDLED, ...names])
    await cp(join(root, 'packages', name), join(repository, 'packages', name), {
      recursive: true,
      filter: isCopied,
    })
  for (const name of ['tools', 'tsconfig.base.json', 'node_modules'])
    await symlink(join(root, name), join(repository, name))
  const archives: string[] = []
  for (const name of names) {
    const cwd = join(repository, 'packages', name)
    const { stdout } = await run('npm', ['pack', '--json'], { cwd })
    const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
    archives.push(join(cwd, filename))
  }
  return archives
}
