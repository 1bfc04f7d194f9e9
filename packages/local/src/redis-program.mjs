// Plain JavaScript, because `npm start` runs it before it installs the Node version that strips types.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where Debian's package is unpacked if there is no Redis. */
export const unpackedRedis = fileURLToPath(new URL('../../../node_modules/.cache/redis', import.meta.url))

export const howToInstallRedis =
  'Redis was not found. Install it with `sudo apt-get install redis-server` (Debian, Ubuntu), `brew install redis` ' +
  '(macOS) or `sudo dnf install valkey` (Fedora).'

/** The first of these programs on the `PATH`. */
export function findProgram(path, ...names) {
  const files = (path ?? '/usr/bin')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
  return files.find((file) => existsSync(file))
}

/** Why nothing can start on this machine. */
export function missingProgram(platform, path, unpacked = unpackedRedis) {
  if (platform === 'win32')
    return 'The embedded ClickHouse does not run on Windows. Use WSL, its Linux subsystem.'
  if (existsSync(unpacked) || findProgram(path, 'redis-server', 'valkey-server')) return undefined
  const canDownload = findProgram(path, 'apt-get') && findProgram(path, 'dpkg-deb')
  return canDownload ? undefined : howToInstallRedis
}
