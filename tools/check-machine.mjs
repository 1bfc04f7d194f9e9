// Ends `npm start` before the download of the dependencies if it needs a program that only the user can install. Requires only Node 20.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const folders = (process.env.PATH ?? '/usr/bin').split(delimiter)
const has = (program) => folders.some((folder) => existsSync(join(folder, program)))

function findProblem() {
  if (process.platform === 'win32')
    return 'The embedded ClickHouse does not run on Windows. Use WSL, its Linux subsystem.'
  // `npm start` can download Redis from Debian's packages.
  if (has('redis-server') || has('valkey-server') || (has('apt-get') && has('dpkg-deb'))) return undefined
  return (
    'Redis was not found. Install it with `sudo apt-get install redis-server` (Debian, Ubuntu), `brew install redis` ' +
    '(macOS) or `sudo dnf install valkey` (Fedora).'
  )
}

const problem = findProblem()
if (problem !== undefined) {
  console.log(`✗ ${problem}`)
  process.exit(1)
}
