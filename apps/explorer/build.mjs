// Bundles the explorer into dist, if a file that it was made of has changed. Plain JavaScript, as tools/install.mjs, which runs it.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(fileURLToPath(import.meta.url))
const root = join(folder, '../..')
const dist = join(folder, 'dist')
const stamp = join(root, 'node_modules', '.sluice-explorer')
const page = 'apps/explorer/src/index.html'
const icon = 'apps/explorer/src/icon.svg'

const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16)
const hashesOf = (files) =>
  Object.fromEntries(
    files.map((file) => [file, existsSync(join(root, file)) ? hashOf(readFileSync(join(root, file))) : '']),
  )

function isCurrent() {
  if (!existsSync(stamp) || !existsSync(dist)) return false
  const before = JSON.parse(readFileSync(stamp, 'utf8'))
  return JSON.stringify(hashesOf(Object.keys(before))) === JSON.stringify(before)
}

/** The files have a hash in their names, so that browsers keep them as long as they like. */
export async function buildExplorer() {
  if (isCurrent()) return
  const esbuild = await import('esbuild')
  const { metafile, outputFiles } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['apps/explorer/src/main.tsx', 'apps/explorer/src/style.css'],
    outdir: dist,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    // Browsers since the first half of 2025, which have RegExp.escape and JSON.rawJSON.
    target: ['chrome136', 'firefox135', 'safari18.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'error',
  })
  // Another process may serve or build at the same time: the folder is replaced as a whole.
  const next = `${dist}.${process.pid}`
  mkdirSync(next, { recursive: true })
  let html = readFileSync(join(root, page), 'utf8')
  for (const { path, contents } of outputFiles) {
    const name = path.slice(dist.length + 1)
    writeFileSync(join(next, name), contents)
    html = html.replace(name.endsWith('.css') ? '/main.css' : '/main.js', `/${name}`)
  }
  writeFileSync(join(next, 'index.html'), html)
  writeFileSync(join(next, 'icon.svg'), readFileSync(join(root, icon)))
  const inputs = [page, icon, 'apps/explorer/build.mjs', 'pnpm-lock.yaml', ...Object.keys(metafile.inputs)]
  const sources = inputs.filter((file) => !file.includes('node_modules'))
  rmSync(dist, { recursive: true, force: true })
  renameSync(next, dist)
  writeFileSync(stamp, JSON.stringify(hashesOf(sources)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildExplorer()
