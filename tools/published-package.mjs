// The steps of `prepack` and `postpack` of a package that is published, in the folder of the package:
//
//   manifest   Inside the repository, the exports are TypeScript sources, which Node does not run below node_modules. The archive has the
//              exports of `publishConfig` instead: the compiled files. Dependencies within the repository get versions. Development
//              dependencies within the repository are not published: their sources are copied, and compiled with those of the package.
//   imports    tsc rewrites `./file.ts` to `./file.js` in the compiled files, but not in the declarations, nor the names of packages.
//   restore    The manifest of the repository is put back.
//
// This file is plain JavaScript because npm runs it with any version of Node.
import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'

const MANIFEST = 'package.json'
const ORIGINAL = 'package.json.original'
const COMPILED = 'dist'
const COPIES = 'bundled'
const SCOPE = '@sluice/'

const steps = { manifest: replaceManifest, imports: rewriteImports, restore: restoreManifest }
const [name = ''] = process.argv.slice(2)
if (!Object.hasOwn(steps, name))
  throw new Error(`usage: published-package.mjs ${Object.keys(steps).join(' | ')}`)
steps[name]()

function replaceManifest() {
  // An earlier run may have failed.
  restoreManifest()
  rmSync(COMPILED, { recursive: true, force: true })
  copyFileSync(MANIFEST, ORIGINAL)
  const manifest = JSON.parse(readFileSync(MANIFEST, 'utf8'))
  const { exports, ...publishConfig } = manifest.publishConfig
  for (const bundled of bundledBy(manifest))
    cpSync(join('..', bundled, 'src'), join('src', COPIES, bundled), { recursive: true })
  // Undefined members are left out.
  const published = {
    ...manifest,
    exports,
    publishConfig,
    dependencies: withVersions(manifest.dependencies),
    scripts: undefined,
    devDependencies: undefined,
  }
  writeFileSync(MANIFEST, `${JSON.stringify(published, undefined, 2)}\n`)
}

function bundledBy({ devDependencies = {} }) {
  return Object.keys(devDependencies)
    .filter((name) => name.startsWith(SCOPE))
    .map((name) => name.slice(SCOPE.length))
}

/** Packages of the repository depend on each other as they are. In the archive, they depend on a version. */
function withVersions(dependencies) {
  if (dependencies === undefined) return undefined
  return Object.fromEntries(
    Object.entries(dependencies).map(([dependency, range]) => [
      dependency,
      range === 'workspace:*' ? versionOf(dependency) : range,
    ]),
  )
}

function versionOf(dependency) {
  const folder = join('..', dependency.slice(SCOPE.length))
  return `^${JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')).version}`
}

function rewriteImports() {
  const bundled = bundledBy(JSON.parse(readFileSync(ORIGINAL, 'utf8')))
  for (const file of readdirSync(COMPILED, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(d\.ts|js)$/.test(file)) continue
    const path = join(COMPILED, file)
    const copies = relative(dirname(file), COPIES) || '.'
    const text = readFileSync(path, 'utf8')
      .replaceAll(/(from |import\()'(\.\.?\/[^']+)\.ts'/g, "$1'$2.js'")
      .replaceAll(
        /(from |import\()'@sluice\/([\w-]+)(?:\/([\w-]+))?'/g,
        (whole, start, name, module = 'index') =>
          bundled.includes(name)
            ? `${start}'${copies.startsWith('.') ? copies : `./${copies}`}/${name}/${module}.js'`
            : whole,
      )
    writeFileSync(path, text)
  }
}

function restoreManifest() {
  rmSync(join('src', COPIES), { recursive: true, force: true })
  if (existsSync(ORIGINAL)) renameSync(ORIGINAL, MANIFEST)
}
