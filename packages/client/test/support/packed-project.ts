import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../../', import.meta.url))

export interface PackedProject {
  readonly path: string
  /** Only this knows which folder to remove: a path computed from `path` could be a folder of the repository. */
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
  for (const name of [...BUNDLED, ...names].map((folder) => join('packages', folder)))
    await cp(join(root, name), join(repository, name), { recursive: true, filter: isCopied })
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

/** Checks that an installed package has compiled files and nothing else. @returns its manifest */
export async function checkInstalled(folder: string): Promise<Readonly<Record<string, unknown>>> {
  const files = await readdir(folder, { recursive: true })
  const others = files.filter((file) => !/^dist(\/|$)/.test(file))
  expect(others.toSorted((a, b) => a.localeCompare(b))).toEqual(['LICENSE', 'package.json', 'README.md'])
  expect(files.filter((file) => /\.\w+$/.test(file) && !/\.(js|d\.ts|json|md)$/.test(file))).toEqual([])
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
  expect(manifest).not.toHaveProperty('devDependencies')
  expect(manifest).not.toHaveProperty('scripts')
  return manifest
}

/** What the compiler says of a program that uses the declarations, with each way to resolve modules. */
export async function compile(project: string, program: string): Promise<string> {
  await writeFile(join(project, 'consumer.ts'), program)
  const common = { target: 'es2022', strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false }
  const typeRoots = [join(root, 'node_modules/@types')]
  let output = ''
  for (const options of [
    { module: 'node16', moduleResolution: 'node16', lib: ['es2022', 'esnext.disposable'] },
    { module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom', 'esnext.disposable'] },
  ]) {
    const compilerOptions = { ...common, ...options, noEmit: true, types: ['node'], typeRoots }
    const config = { compilerOptions, files: ['consumer.ts'] }
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/.bin/tsc')
    const compiled = await run(tsc, ['--project', project]).catch((error: { stdout: string }) => error)
    output += compiled.stdout
  }
  return output
}
