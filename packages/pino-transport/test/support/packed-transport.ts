import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, realpath, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** A project with pino, and with client and transport installed from their archives. Nothing in the repository is changed. */
export async function installPackedTransport(): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'packed-'))
  const archives = await packAll(join(folder, 'repository'), ['client', 'pino-transport'])
  const project = join(folder, 'project')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...archives], { cwd: project })
  await symlink(
    await realpath(join(root, 'packages/pino-transport/node_modules/pino')),
    join(project, 'node_modules/pino'),
  )
  return project
}

const isCopied = (path: string): boolean => !/\/(test|node_modules|dist)$/.test(path)

/** Packs copies of the packages, since `npm pack` changes their manifests for a moment. */
async function packAll(repository: string, names: readonly string[]): Promise<string[]> {
  for (const name of names)
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
