// Installs the workspace if it is missing or older than the lockfile, with nothing but Node 20 and npm on the
// machine. Plain JavaScript, because it runs before the Node that strips types is there.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
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
  console.log('Installing the packages of this project, once (about 270 MB to fetch) …')
  const { status } = spawnSync('npx', ['--yes', packageManager, 'install', '--frozen-lockfile'], {
    cwd: root,
    stdio: 'inherit',
    // CI=true: without it pnpm asks before it replaces a node_modules folder of another layout.
    env: { ...process.env, CI: 'true' },
  })
  if (status !== 0) {
    console.error('The installation failed; what pnpm said is above.')
    process.exit(1)
  }
  writeFileSync(stamp, fingerprint)
}
