import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, realpath, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** A project with the client, installed from its archive as it would be published. Nothing in the repository is changed. */
export async function installPackedClient(): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'packed-'))
  const archive = await pack(join(folder, 'repository'))
  const project = join(folder, 'project')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', archive], { cwd: project })
  return project
}

const isCopied = (path: string): boolean => !/\/(test|node_modules|dist)$/.test(path)

/** Packs a copy of the package, since `npm pack` changes its manifest for a moment. */
async function pack(repository: string): Promise<string> {
  const target = join(repository, 'packages/client')
  await cp(join(root, 'packages/client'), target, { recursive: true, filter: isCopied })
  for (const name of ['tools', 'tsconfig.base.json', 'node_modules'])
    await symlink(join(root, name), join(repository, name))
  const { stdout } = await run('npm', ['pack', '--json'], { cwd: target })
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  return join(target, filename)
}

/** A program on the PATH, other than those that the repository installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((path) => !path.includes('node_modules'))
  for (const folder of folders) {
    const path = join(folder, name)
    const isProgram = await run(path, ['--version']).then(
      () => true,
      () => false,
    )
    if (isProgram) return path
  }
  return undefined
}
