// The steps of `prepack` and `postpack` of a package that is published, in the folder of the package:
//
//   manifest       Inside the repository, the exports are TypeScript sources, which Node does not run below node_modules. The archive has the
//                  exports of `publishConfig` instead: the compiled files. Dependencies within the repository get versions.
//   declarations   tsc rewrites `./file.ts` to `./file.js` in the compiled files, but not in the declarations.
//   restore        The manifest of the repository is put back.
//
// This file is plain JavaScript because npm runs it with any version of Node.
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

const MANIFEST = 'package.json'
const ORIGINAL = 'package.json.original'
const COMPILED = 'dist'

const steps = { manifest: replaceManifest, declarations: rewriteDeclarations, restore: restoreManifest }
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
  const folder = join('..', dependency.slice('@sluice/'.length))
  return `^${JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')).version}`
}

function rewriteDeclarations() {
  for (const file of readdirSync(COMPILED, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue
    const path = join(COMPILED, file)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replaceAll(/(from |import\()'(\.\.?\/[^']+)\.ts'/g, "$1'$2.js'"))
  }
}

function restoreManifest() {
  if (existsSync(ORIGINAL)) renameSync(ORIGINAL, MANIFEST)
}
