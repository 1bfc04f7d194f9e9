import type { ClickHouseClient } from '@sluice/clickhouse'
import { PATIENCE_MS } from '@sluice/harness/waiting'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectAgain, openTestDatabase } from '../packages/clickhouse/test/test-database.ts'
import { readExplorer } from '../apps/query/src/explorer.ts'
import { type RowFields, store, TestQuery } from '../apps/query/test/support/test-query.ts'
import { hasChromium, launchChromium } from '../apps/explorer/test/support/chromium.ts'

const STEP_MS = 500

// The API that the other tests have is an imitation. This one shows that the page understands the real one.
describe.skipIf(!hasChromium)('the explorer and the query API', () => {
  let browser: Awaited<ReturnType<typeof launchChromium>>
  let clickhouse: ClickHouseClient
  let readers: ClickHouseClient
  let api: TestQuery

  beforeAll(async () => {
    clickhouse = await openTestDatabase()
    readers = await connectAgain(clickhouse)
    api = new TestQuery(readers, {
      explorer: readExplorer(fileURLToPath(new URL('../apps/explorer/dist', import.meta.url))),
    })
    await api.listen()
    browser = await launchChromium()
  })
  afterAll(async () => {
    await browser.close()
    await api.close()
    await readers.close()
    await clickhouse.close()
  })

  it('list, count, open, surround and follow entries', async () => {
    const { projectId, key } = api.addProject()
    const startMs = Date.now() - 60_000
    const rowAt = (number: number): RowFields => ({
      projectId,
      receivedMs: startMs + number * STEP_MS,
      level: number % 10 === 0 ? 'error' : 'info',
      message: `message ${number}.`,
      service: number % 2 === 0 ? 'web' : 'api',
      metadata: `{"user":{"id":1234567890123456789${number % 10}},"price":1.50}`,
    })
    await store(
      clickhouse,
      Array.from({ length: 60 }, (_, number) => rowAt(number)),
    )
    api.completeMs = startMs + 59 * STEP_MS
    const page = await browser.newPage()
    page.setDefaultTimeout(PATIENCE_MS)
    const see = (selector: string, text: string | RegExp) =>
      page.locator(selector, { hasText: text }).first().waitFor()

    await page.goto(api.url)
    await page.fill('#key', key)
    await page.press('#key', 'Enter')
    await see('.summary .total', /^60$/)
    await see('.complete', 'complete up to')
    await see('.legend', /error 6.*info 54/)
    await see('.facet-value', /web.*30/)
    await see('.facet-value', /user\.id.*60/)

    await page.click('#row-29')
    await see('#details', /message 30\..*12345678901234567890.*1\.50/)
    await page.keyboard.press('c')
    await see('#row-20.origin', 'message 30.')
    expect(await page.locator('#entries').getAttribute('aria-rowcount')).toBe('42')
    const [first, last] = [page.locator('#row-0'), page.locator('#row-40')]
    expect([await first.textContent(), await last.textContent()].join()).toMatch(/message 50\..*message 10\./)
    const id = new URL(page.url()).searchParams.get('context') ?? ''
    await page.goto(`${api.url}/?id=${id}&q=nothing`)
    await see('.entry-message', 'message 30.')

    await page.goto(`${api.url}/?q=service%3Aweb`)
    await see('#row-0', 'message 58.')
    // It is received, and stored, before the tail begins, and the page does not have it.
    await page.route('**/v1/query/tail?*', async (route) => {
      await store(clickhouse, [rowAt(62), rowAt(63)])
      await route.continue()
    })
    await page.keyboard.press('l')
    await see('.strip', 'Following')
    await store(clickhouse, [rowAt(64)])
    api.completeMs = startMs + 64 * STEP_MS
    await see('#row-0', 'message 64.')
    await see('#row-1', 'message 62.')
    await see('#row-2', 'message 58.')
    await page.close()
  })
})
