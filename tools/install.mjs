// Installs the dependencies if they are missing or do not match the lockfile, and bundles the explorer if it has changed. Requires only
// Node 20 and npm. This file is plain
// JavaScript because it runs before the Node version that strips types is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = join(root, 'node_modules', '.sluice-installed')
const read = (path) => readFileSync(join(root, path), 'utf8')

const fingerprint = createHash('sha256')
  .update(read('pnpm-lock.yaml'))
  .update(read('pnpm-workspace.yaml'))
  .update(`${process.platform}-${process.arch}`)
  .digest('hex')
const installed = existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint

if (!installed) {
  const { packageManager } = JSON.parse(read('package.json'))
  console.log('Installing the dependencies of this project (one-time download of about 270 MB) …')
  const { status, error, stdout, stderr } = spawnSync(
    'npx',
    ['--yes', packageManager, 'install', '--frozen-lockfile'],
    {
      cwd: root,
      // Without CI=true, pnpm prompts before it replaces a node_modules folder with a different layout.
      env: { ...process.env, CI: 'true' },
      encoding: 'utf8',
      maxBuffer: Infinity,
    },
  )
  if (status !== 0) {
    process.stderr.write(`${stdout}${stderr}`)
    console.error(
      `The installation failed${error ? `: ${error.message}` : '. See the output of pnpm above.'}`,
    )
    process.exit(1)
  }
  writeFileSync(stamp, fingerprint)
}

// Loaded only now: it needs what was installed.
const { buildExplorer } = await import('../apps/explorer/build.mjs')
await buildExplorer()
