// The steps of `prepack` and `postpack` of a package that is published, in the folder of the package:
//
//   manifest   Inside the repository, the exports are TypeScript sources, which Node does not run below node_modules. The archive has the
//              exports of `publishConfig` instead: the compiled files. Dependencies within the repository get versions. Private ones
//              are not published: their sources are copied, and compiled with those of the package.
//   imports    tsc rewrites `./file.ts` to `./file.js` in the compiled files, but not in the declarations, nor the names of packages.
//   restore    The manifest of the repository is put back.
//
// This file is plain JavaScript because npm runs it with any version of Node.
import * as fs from 'node:fs'
import { dirname, join, relative } from 'node:path'

const MANIFEST = 'package.json'
const ORIGINAL = 'package.json.original'
const COMPILED = 'dist'
const COPIES = 'bundled'
const SCOPE = '@sluice/'

const steps = { manifest: replaceManifest, imports: rewriteImports, restore: restoreManifest }
const [step = ''] = process.argv.slice(2)
if (!Object.hasOwn(steps, step))
  throw new Error(`usage: published-package.mjs ${Object.keys(steps).join(' | ')}`)
steps[step]()

function replaceManifest() {
  // An earlier run may have failed.
  restoreManifest()
  fs.rmSync(COMPILED, { recursive: true, force: true })
  fs.copyFileSync(MANIFEST, ORIGINAL)
  const manifest = JSON.parse(fs.readFileSync(MANIFEST, 'utf8'))
  const { exports, ...publishConfig } = manifest.publishConfig
  for (const bundled of bundledBy(manifest))
    fs.cpSync(join('..', bundled, 'src'), join('src', COPIES, bundled), { recursive: true })
  // Undefined members are left out.
  const published = {
    ...manifest,
    exports,
    publishConfig,
    dependencies: publishedDependencies(manifest),
    scripts: undefined,
    devDependencies: undefined,
  }
  fs.writeFileSync(MANIFEST, `${JSON.stringify(published, undefined, 2)}\n`)
}

/** The dependencies that are not published. */
function bundledBy({ dependencies = {} }) {
  return Object.keys(dependencies)
    .filter((name) => name.startsWith(SCOPE) && manifestOf(name).private)
    .map((name) => name.slice(SCOPE.length))
}

/** Packages of the repository depend on each other as they are. In the archive, they depend on a version. */
function publishedDependencies({ dependencies = {} }) {
  const published = Object.entries(dependencies)
    .filter(([name]) => !(name.startsWith(SCOPE) && manifestOf(name).private))
    .map(([name, range]) => [name, range === 'workspace:*' ? `^${manifestOf(name).version}` : range])
  return published.length === 0 ? undefined : Object.fromEntries(published)
}

function manifestOf(name) {
  return JSON.parse(fs.readFileSync(join('..', name.slice(SCOPE.length), MANIFEST), 'utf8'))
}

function rewriteImports() {
  const bundled = bundledBy(JSON.parse(fs.readFileSync(ORIGINAL, 'utf8')))
  for (const file of fs.readdirSync(COMPILED, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(d\.ts|js)$/.test(file)) continue
    const path = join(COMPILED, file)
    const copies = relative(dirname(file), COPIES) || '.'
    const text = fs
      .readFileSync(path, 'utf8')
      .replaceAll(/(from |import\()'(\.\.?\/[^']+)\.ts'/g, "$1'$2.js'")
      .replaceAll(
        /(from |import\()'@sluice\/([\w-]+)(?:\/([\w-]+))?'/g,
        (whole, start, name, module = 'index') =>
          bundled.includes(name)
            ? `${start}'${copies.startsWith('.') ? copies : `./${copies}`}/${name}/${module}.js'`
            : whole,
      )
    fs.writeFileSync(path, text)
  }
}

function restoreManifest() {
  fs.rmSync(join('src', COPIES), { recursive: true, force: true })
  if (fs.existsSync(ORIGINAL)) fs.renameSync(ORIGINAL, MANIFEST)
}
