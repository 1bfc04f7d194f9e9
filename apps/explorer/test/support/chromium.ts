import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where tools/chromium.sh puts it, if the release tests have run. */
const cache = fileURLToPath(new URL('../../../../node_modules/.cache/chromium/bin', import.meta.url))

/** The path of a Chromium, if there is one. */
export function findChromium(): string | undefined {
  return [cache, ...(process.env['PATH'] ?? '').split(':')]
    .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
    .find((path) => existsSync(path))
}
