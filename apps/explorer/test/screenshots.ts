// `npm run lab -- screenshots`: makes the pictures of the explorer in docs/images, with the entries of `sluice demo`. Needs Chromium
// (tools/chromium.sh unpacks one).
import { seededRandom } from '@sluice/harness'
import { PATIENCE_MS } from '@sluice/harness/waiting'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pastOfShop } from '../../cli/src/demo/shop-traffic.ts'
import { launchChromium } from './support/chromium.ts'
import { type FakeEntry, idAt } from './support/fake-entries.ts'
import { FakeQueryApi } from './support/fake-query-api.ts'

const NOW_MS = Date.UTC(2026, 10, 24, 12)
const ENTRIES = 2_000
const SEED = 7
const size = { width: 1440, height: 900 } as const
/** A picture of text has about 100 kB then. */
const QUALITY = 75

const entries = [...pastOfShop(NOW_MS, ENTRIES, seededRandom(SEED))].map((line, number): FakeEntry => {
  const sent = JSON.parse(line) as Omit<FakeEntry, 'id' | 'metadata'> & { metadata: object }
  const { timestamp, metadata } = sent
  const id = idAt(Date.parse(timestamp), number)
  return Object.assign(sent, { id, received_at: timestamp, metadata: JSON.stringify(metadata) })
})
const error = entries.findLast(({ stack }) => stack !== undefined)
const api = new FakeQueryApi(entries, () => NOW_MS)
const url = await api.listen()
const browser = await launchChromium()
try {
  for (const colorScheme of ['dark', 'light'] as const) {
    const context = await browser.newContext({
      viewport: size,
      colorScheme,
      timezoneId: 'UTC',
      locale: 'en-US',
    })
    context.setDefaultTimeout(PATIENCE_MS)
    await context.addCookies([{ name: 'session', value: '1', url }])
    const page = await context.newPage()
    await page.clock.setFixedTime(NOW_MS)
    await page.goto(`${url}/?q=service%3Acheckout+OR+service%3Aweb&id=${error?.id}`)
    await page.locator('#entries[aria-busy=false]').waitFor()
    await page.locator('.page:not(:has(.loading))').waitFor()
    // Playwright itself has no WebP.
    const session = await context.newCDPSession(page)
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY })
    const file = fileURLToPath(new URL(`../../../docs/images/explorer-${colorScheme}.webp`, import.meta.url))
    const picture = Buffer.from(data, 'base64')
    writeFileSync(file, picture)
    process.stdout.write(`${file}: ${picture.length} bytes\n`)
  }
} finally {
  await browser.close()
  await api.close()
}
