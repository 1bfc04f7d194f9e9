import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'

/** Where tools/chromium.sh puts it, if the release tests have run. */
const cache = fileURLToPath(new URL('../../../../node_modules/.cache/chromium/bin', import.meta.url))

/** The path of a Chromium, if there is one. */
const executablePath = [cache, ...(process.env['PATH'] ?? '').split(':')]
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((path) => existsSync(path))
export const hasChromium = executablePath !== undefined

export async function launchChromium(): Promise<Browser> {
  if (executablePath === undefined)
    throw new Error('there is no Chromium: tools/chromium.sh node_modules/.cache/chromium')
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
