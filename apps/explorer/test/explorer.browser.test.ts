import { PATIENCE_MS } from '@sluice/harness/waiting'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hasChromium, launchChromium } from './support/chromium.ts'
import { hostileEntries } from './support/fake-entries.ts'
import { fakeGroups } from './support/fake-pipeline.ts'
import { FakeQueryApi, fakeHour, READ_KEY, refuse } from './support/fake-query-api.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const total = (page: Page) => page.locator('.total').textContent()
const idle = (page: Page) => page.locator('.page:not(:has(.loading, #entries[aria-busy=true]))').waitFor()
async function search(page: Page, text: string): Promise<void> {
  await page.fill('#query', text)
  await page.press('#query', 'Enter')
  await idle(page)
}
const row = (page: Page, index: number) => page.locator(`#row-${index}`)
const expectText = (page: Page | Locator, text: string) => page.getByText(text).waitFor()
const hasText = (page: Page, selector: string, text: string | RegExp) =>
  page.locator(selector, { hasText: text }).first().waitFor()

async function expectNoViolations(page: Page): Promise<void> {
  // What is about to be replaced is pale.
  await expect.poll(() => page.locator('.stale').count(), { timeout: 20_000 }).toBe(0)
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() =>
    (
      globalThis as unknown as {
        axe: {
          run(): Promise<{
            violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
          }>
        }
      }
    ).axe.run(),
  )
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)).toEqual(
    [],
  )
}

describe.skipIf(!hasChromium)('the explorer, if there is a Chromium (tools/chromium.sh unpacks one)', () => {
  let browser: Browser
  let shared: FakeQueryApi
  let sharedUrl: string
  const own: FakeQueryApi[] = []
  const contexts: BrowserContext[] = []
  const faults: string[] = []

  beforeAll(async () => {
    browser = await launchChromium()
    shared = new FakeQueryApi()
    sharedUrl = await shared.listen()
  })
  afterEach(async () => {
    shared.before = () => undefined
    await Promise.all(contexts.splice(0).map((context) => context.close()))
    await Promise.all(own.splice(0).map((api) => api.close()))
    // What the policy forbids, and what a component throws, is an error in the console.
    const [fault] = faults.splice(0)
    if (fault !== undefined) throw new Error(fault)
  })
  afterAll(async () => {
    await browser.close()
    await shared.close()
  })

  async function start(api: FakeQueryApi): Promise<string> {
    own.push(api)
    return api.listen()
  }

  interface Options {
    readonly url?: string
    readonly signedIn?: boolean
    readonly theme?: 'dark' | 'light'
  }
  async function visit(
    path: string,
    { url = sharedUrl, signedIn = true, theme = 'dark' }: Options = {},
  ): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      colorScheme: theme,
      timezoneId: 'UTC',
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    contexts.push(context)
    context.setDefaultTimeout(PATIENCE_MS)
    if (signedIn) await context.addCookies([{ name: 'session', value: '1', url }])
    const page = await context.newPage()
    // As in Safari.
    await page.addInitScript(() => Reflect.deleteProperty(ReadableStream.prototype, Symbol.asyncIterator))
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        faults.push(message.text())
    })
    await page.goto(url + path)
    if (signedIn) await page.locator('#entries[aria-busy=false], .pipeline, .blank').first().waitFor()
    return page
  }
  it('signs in with a key, and out', async () => {
    const page = await visit('/?q=level%3Aerror', { signedIn: false })
    await page.fill('#key', 'slk_wrong')
    await page.press('#key', 'Enter')
    await expectText(page, 'This key is unknown')
    await page.fill('#key', READ_KEY)
    await page.press('#key', 'Enter')
    await page.locator('.project', { hasText: 'demo' }).waitFor()
    expect(await page.inputValue('#query')).toBe('level:error')
    await page.click('[aria-label="Sign out"]')
    await page.locator('#key:focus').waitFor()
  })

  it('asks for a key when the session has ended', async () => {
    const page = await visit('/')
    shared.before = () => refuse(401, 'unauthorized', 'The session has ended')
    await page.keyboard.press('r')
    await expectText(page, 'Read key')
  })

  it('searches, and has its state in the URL', async () => {
    const page = await visit('/?from=-1h')
    await search(page, 'level:error service:checkout')
    expect(await row(page, 0).textContent()).toContain('errorcheckout')
    expect(page.url()).toContain('q=level%3Aerror+service%3Acheckout')
    const found = await total(page)
    await search(page, '')
    expect(await total(page)).not.toBe(found)
    await page.goBack()
    await idle(page)
    expect(await page.inputValue('#query')).toBe('level:error service:checkout')
    await page.locator('.complete', { hasText: /complete up to \d\d:\d\d:\d\d/ }).waitFor()
  })

  it('completes fields and values', async () => {
    const page = await visit('/?from=-1h')
    await page.locator('.facet-value', { hasText: 'http.status' }).waitFor()
    await page.click('#query')
    await page.keyboard.type('-level:debug http.s')
    await page.locator('[role=option]', { hasText: 'http.status' }).waitFor()
    await page.keyboard.press('Tab')
    expect(await page.inputValue('#query')).toBe('-level:debug http.status:')
    await page.locator('[role=option]', { hasText: '503' }).waitFor()
    await page.keyboard.type('50')
    await page.locator('[role=option]', { hasText: '504' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    expect(await page.inputValue('#query')).toMatch(/^-level:debug http\.status:50\d $/)
    await page.keyboard.press('Enter')
    await idle(page)
    expect(await row(page, 0).textContent()).toContain('error')
  })

  it('shows an error at its place, from here and from the server', async () => {
    const page = await visit('/')
    await search(page, 'service:web (timeout')
    expect(await page.locator('.coloured .wrong').textContent()).toBe('(')
    expect(await page.locator('#query-error').textContent()).toContain('Expected a )')
    await expectText(page, 'The query cannot be read')
    await search(page, 'timeout')
    await page.locator('#query-error').waitFor({ state: 'hidden' })
    shared.before = (operation) => {
      if (operation === 'logs')
        refuse(422, 'query_too_expensive', 'The query is too expensive', 'It would read 9 billion rows.')
    }
    await page.keyboard.press('Enter')
    await expectText(page, 'It would read 9 billion rows.')
    shared.before = () => undefined
    await page.getByText('Search the last hour').click()
    await idle(page)
    expect(page.url()).toContain('from=-1h')
  })

  it('shows that an answer takes long, and cancels it', async () => {
    const page = await visit('/')
    const { promise, resolve } = Promise.withResolvers<void>()
    shared.before = (operation) => (operation === 'logs' ? promise : undefined)
    await page.keyboard.press('r')
    await expectText(page, 'Still reading')
    await page.getByText('Cancel', { exact: true }).click()
    await expectText(page, 'Cancelled')
    resolve()
  })

  it('says what to do if nothing matches', async () => {
    const page = await visit('/?q=nothinglikethis')
    await expectText(page, 'Nothing matches in this time range')
    await page.getByText('Clear the query').click()
    await row(page, 0).waitFor()
  })

  it('zooms by dragging and with the keys', async () => {
    const page = await visit('/?from=-1h')
    const box = await page.locator('#chart').boundingBox()
    if (box === null) throw new Error('there is no chart')
    await page.mouse.move(box.x + box.width * 0.25, box.y + 30)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.5, box.y + 30)
    await page.mouse.up()
    await page.waitForURL(/from=20.*until=20/)
    await idle(page)
    const zoomed = new URL(page.url()).searchParams
    const minutes = (Date.parse(zoomed.get('until') ?? '') - Date.parse(zoomed.get('from') ?? '')) / 60_000
    expect(minutes).toBeGreaterThanOrEqual(14)
    expect(minutes).toBeLessThanOrEqual(18)
    const before = Number((await total(page))?.replace(',', ''))
    await page.keyboard.press('h')
    for (const key of ['ArrowLeft', 'ArrowLeft', 'Shift+ArrowLeft', 'Shift+ArrowLeft', 'Enter'])
      await page.keyboard.press(key)
    await page.waitForURL((url) => url.searchParams.get('from') !== zoomed.get('from'))
    await idle(page)
    expect(Number((await total(page))?.replace(',', ''))).toBeLessThan(before)
    await page.keyboard.press('z')
    await page.waitForURL((url) => url.searchParams.get('until') !== zoomed.get('until'))
  })

  it('filters and excludes by facets', async () => {
    const page = await visit('/?from=-1h')
    await page.locator('.facet-value', { hasText: 'payments' }).click()
    await idle(page)
    expect(await page.inputValue('#query')).toBe('service:payments')
    await page.click('[aria-label="Exclude level info"]', { force: true })
    await idle(page)
    expect(await page.inputValue('#query')).toBe('service:payments -level:info')
    await page.locator('.facet-value', { hasText: 'http.status' }).click()
    await page.locator('.facet-value', { hasText: '503' }).waitFor()
    await page.waitForURL(/facet=http.status/)
  })

  it('shows the details with exact numbers, and filters by them', async () => {
    const page = await visit('/?from=-1h&q=level%3Aerror')
    await row(page, 0).click()
    const details = page.locator('#details')
    await details.getByText('3 frames of libraries').click()
    await expectText(details, 'TCPConnectWrap')
    const order = await details.locator('.pair', { hasText: /^id12345/ }).textContent()
    const digits = /\d{20}/.exec(order ?? '')?.[0] ?? ''
    expect(shared.entries.some(({ metadata }) => metadata.includes(`"id":${digits}}`))).toBe(true)
    await page.keyboard.press('y')
    await expectText(page, 'Copied the entry')
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(`"id": ${digits}`)
    await details.locator('.pair', { hasText: /^id12345/ }).focus()
    await page.keyboard.press('f')
    await idle(page)
    expect(await page.inputValue('#query')).toBe(`level:error order.id:${digits}`)
    expect(await total(page)).toBe('1')
  })

  it('has a link to an entry, which works without the list', async () => {
    const page = await visit('/?from=-1h&q=level%3Aerror')
    await row(page, 3).click()
    const message = await page.locator('.entry-message').textContent()
    await page.keyboard.press('p')
    await expectText(page, 'Copied the link')
    const link = await page.evaluate(() => navigator.clipboard.readText())
    const other = await visit(link.slice(sharedUrl.length))
    await other.locator('.entry-message', { hasText: message ?? '' }).waitFor()
    const missing = await visit('/?id=01a21d18-06c6-7000-8000-00000000ffff')
    await expectText(missing, 'The entry does not exist')
  })

  it('shows the entries around one', async () => {
    const page = await visit('/?from=-1h&q=level%3Aerror')
    await row(page, 5).click()
    const id =
      new URL(page.url()).searchParams.get('id') ??
      (await page.locator('.pair', { hasText: /^id01/ }).last().textContent())
    await page.keyboard.press('c')
    await page.locator('.row.origin').waitFor()
    expect(await page.locator('#entries').getAttribute('aria-rowcount')).toBe('42')
    expect(await page.locator('.row.origin').getAttribute('id')).toBe('row-20')
    expect(id).toContain('7000-8000')
    await page.getByLabel('same service').check()
    await idle(page)
    const services = await page.locator('.row[data-index] .cell.value').allTextContents()
    expect(new Set(services).size).toBe(1)
    await page.getByText('Back to the results').click()
    await idle(page)
    expect(await page.locator('#entries').getAttribute('aria-rowcount')).toBe('201')
  })

  it('follows 1,000 entries a second, pauses, and stays bounded', async () => {
    const api = new FakeQueryApi()
    api.tailRate = 1000
    const page = await visit('/?live=true', { url: await start(api) })
    const loaded = async () =>
      Number(/[\d,]+/.exec((await page.locator('.loaded').textContent()) ?? '')?.[0].replace(',', ''))
    await expect.poll(loaded).toBeGreaterThan(2000)
    await page.keyboard.press('Space')
    await expectText(page, 'Paused')
    const first = await row(page, 0).textContent()
    const before = await loaded()
    await page.locator('.strip b', { hasText: /\d,\d{3} new entries/ }).waitFor()
    expect(await row(page, 0).textContent()).toBe(first)
    expect(await loaded()).toBe(before)
    api.tailRate = 10_000
    await expectText(page, 'not kept during the pause')
    await page.keyboard.press('Space')
    await expect.poll(loaded).toBe(10_000)
    expect(await row(page, 0).textContent()).not.toBe(first)
    expect(await page.locator('.row').count()).toBeLessThan(150)
  })

  it('pauses when a person scrolls down', async () => {
    const api = new FakeQueryApi()
    const page = await visit('/?live=true', { url: await start(api) })
    await page.locator('#entries').hover()
    await page.mouse.wheel(0, 600)
    await expectText(page, 'Paused')
  })

  it('continues the tail after the server has restarted, without a gap', async () => {
    const api = new FakeQueryApi()
    const url = await start(api)
    // They are received after the page has been read, and before its tail begins.
    api.before = (operation) => operation === 'tail' && api.grow(50)
    const page = await visit('/?live=true', { url })
    const length = api.entries.length
    await expect.poll(() => api.entries.length).toBeGreaterThan(length + 20)
    await api.close()
    await expectText(page, 'Reconnecting')
    api.grow(500)
    await api.listen(Number(new URL(url).port))
    await expectText(page, 'Following')
    api.tailRate = 0
    await expect
      .poll(() => page.locator('#entries').getAttribute('aria-rowcount'))
      .toBe(String(201 + api.entries.length - 9000))
  })

  it('shows hostile entries as text', async () => {
    const api = new FakeQueryApi(hostileEntries(Date.now() - 10_000))
    const page = await visit('/?from=-1h', { url: await start(api) })
    await expect.poll(() => page.locator('.row[data-index]').count()).toBe(6)
    for (let index = 0; index < 6; index += 1) {
      await row(page, index).click()
      await page.locator('#details .pair').first().waitFor()
      const more = page.locator('#details .more').first()
      for (let clicks = 0; clicks < 3 && (await more.isVisible()); clicks += 1) await more.click()
      await page.keyboard.press('Escape')
    }
    expect(await page.title()).toBe('Sluice')
    expect(await page.locator('#entries :is(img, script, svg, b)').count()).toBe(0)
    const texts = await page.locator('.cell.message').allTextContents()
    expect(texts.join('\n')).toContain('<img src=x onerror=')
    expect(texts.join('\n')).toContain('adminU+202EU+2066gnp.exeU+2069 ^@^G^[[31mredU+200B zero')
    expect(
      await page.evaluate((): Record<string, unknown> => ({})).then((object) => object['polluted']),
    ).toBeUndefined()
    await search(page, '"first line"')
    await row(page, 0).click()
    await expectText(page, '123456789012345678901234567890')
    await search(page, 'path9999:9999')
    await row(page, 0).click()
    expect(await page.locator('#details .pair').count()).toBeLessThan(1200)
  })

  it('works with the keyboard only', async () => {
    const page = await visit('/?from=-1h', { signedIn: false })
    await page.locator('#key:focus').waitFor()
    const keys = async (...names: string[]) => {
      for (const name of names) await page.keyboard.press(name)
    }
    await page.keyboard.type(READ_KEY)
    await keys('Enter')
    await idle(page)
    await keys('/')
    await page.keyboard.type('level:error')
    await keys('Enter', 'Escape')
    await idle(page)
    await keys('ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowRight', 'f')
    await idle(page)
    expect(await page.inputValue('#query')).toMatch(/^level:error service:\w+$/)
    await keys('e', 'j', 'Enter')
    await page.locator('#details').waitFor()
    await keys('i', 'ArrowDown', 'x')
    await idle(page)
    expect(await page.inputValue('#query')).toMatch(/ -/)
    await keys('Escape', 't', 'ArrowUp', 'Enter')
    await idle(page)
    expect(page.url()).not.toContain('from=-1h')
    // They are asked for last, and the searches above have ended earlier requests.
    await page.locator('.facet-value', { hasText: 'host' }).waitFor()
    await keys('w')
    await page.locator('.popover').waitFor()
    await page.keyboard.type('host')
    await keys('ArrowDown', 'Space', 'Escape')
    await page.locator('[role=columnheader]', { hasText: 'host' }).waitFor()
    await keys('s', 'v')
    await page.locator('.popover .menu-item').first().waitFor()
    await keys('Escape', 'g', 'ArrowDown', '?')
    await page.locator('dialog[open]').waitFor()
    await keys('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await keys('l')
    await expectText(page, 'Following')
  })

  it('keeps saved and recent searches in the browser, and the time zone in the URL', async () => {
    const page = await visit('/?from=-1h')
    await search(page, 'timeout')
    await page.keyboard.press('Escape')
    await page.keyboard.press('s')
    await page.goto(`${sharedUrl}/?tz=Asia%2FKathmandu`)
    await idle(page)
    await page.keyboard.press('v')
    await page.locator('.popover .menu-item', { hasText: 'timeout' }).click()
    await page.waitForURL(/q=timeout/)
    expect(await page.locator('.btn.time').textContent()).toContain('UTC+5:45')
  })

  it('lists 100,000 entries, and draws only those that are seen', async () => {
    const api = new FakeQueryApi(fakeHour(Date.now(), 101_000))
    const page = await visit('/?from=-2h&facet=', { url: await start(api) })
    await page.evaluate(async () => {
      const list = document.querySelector('#entries')
      if (list === null) throw new Error('there is no list')
      while (Number(list.getAttribute('aria-rowcount')) <= 100_000) {
        list.scrollTop = list.scrollHeight
        await new Promise(requestAnimationFrame)
      }
    })
    await expectText(page, 'Narrow the time range')
    for (const index of [99_999, 50_000, 7]) {
      await page.evaluate((at) => document.querySelector('#entries')?.scrollTo(0, at * 22 - 100), index)
      const entry = api.entries[api.entries.length - 1 - index]
      await expect.poll(() => row(page, index).textContent()).toContain(entry?.message)
      // After a jump, none that cannot be seen.
      const height = await page.locator('#entries').evaluate((list) => list.clientHeight)
      expect(await page.locator('.row[data-index]').count()).toBeLessThanOrEqual(height / 22 + 2)
    }
  })

  it('keeps the row of the cursor in sight', async () => {
    const page = await visit('/?from=-1h')
    const edges = (selector: string) =>
      page.locator(selector).evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect()
        return { top, bottom }
      })
    await page.keyboard.press('e')
    for (const key of ['PageDown', 'PageDown', 'ArrowDown']) await page.keyboard.press(key)
    expect((await edges('.cursor')).bottom).toBeLessThanOrEqual((await edges('#entries')).bottom)
    for (const key of ['PageUp', 'PageUp']) await page.keyboard.press(key)
    expect((await edges('.cursor')).top).toBeGreaterThanOrEqual((await edges('.row.head')).bottom)
  })

  it('asks for a page that failed when the list is scrolled again, and not before', async () => {
    const page = await visit('/?from=-1h&facet=')
    await page.locator('.facet-value').first().waitFor()
    let asked = 0
    shared.before = (operation) => {
      if (operation === 'logs') asked += 1
      refuse(422, 'query_too_expensive', 'The query is too expensive')
    }
    const list = page.locator('#entries')
    await list.evaluate((element) => element.scrollTo(0, element.scrollHeight))
    await expectText(page, 'The query is too expensive')
    shared.before = () => undefined
    await list.evaluate((element) => element.scrollBy(0, -1))
    await expect.poll(() => list.getAttribute('aria-rowcount')).not.toBe('201')
    expect(asked).toBe(1)
  })

  it('shows the pipeline, and goes there and back', async () => {
    const page = await visit('/?q=level%3Aerror&from=-1h')
    await page.getByRole('link', { name: 'Pipeline' }).click()
    await page.waitForURL(/\/pipeline$/)
    await expectText(page, 'Nothing needs attention')
    await hasText(page, '.figures', /4\d,\d{3}\s*accepted/)
    expect(await page.locator('.tiles path').count()).toBe(8)
    await hasText(page, 'tr', /worker sluice-worker-7d9f\/19.*ready.*67/)
    await expectText(page, 'ClickHouse has taken every row')
    const now = await page.locator('.moment .number').textContent()
    await page.locator('.moment input').focus()
    for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press('ArrowLeft')
    expect(now).toContain('now')
    expect(await page.locator('.moment .number').textContent()).not.toContain('now')
    // Keys of the other page do nothing here.
    await page.keyboard.press('z')
    await page.keyboard.press('u')
    await page.waitForURL(/\/pipeline\?tz=UTC$/)
    await page.keyboard.press('b')
    await idle(page)
    expect(await page.inputValue('#query')).toBe('level:error')
    await page.goBack()
    await expectText(page, 'Nothing needs attention')
  })

  it('says what needs attention, and asks before it retries', async () => {
    const api = new FakeQueryApi()
    api.isInTrouble = true
    api.groups = fakeGroups(Date.now())
    const page = await visit('/pipeline', { url: await start(api) })
    for (const text of ['Shard 1 does not answer', 'has stopped reporting', '1,316 rows were rejected'])
      await expectText(page, text)
    await page.locator('summary', { hasText: 'CANNOT_PARSE_DATETIME' }).click()
    await page.waitForURL(/group=CANNOT_PARSE_DATETIME/)
    expect(await page.locator('.letters details[open] > div').count()).toBe(20)
    const retry = page.getByRole('button', { name: 'Retry all VIOLATED_CONSTRAINT' })
    await retry.click()
    await expectText(page, 'Insert 1,284 rows again?')
    await page.keyboard.press('Enter')
    await page.locator('.popover').waitFor({ state: 'detached' })
    expect(api.asked).toEqual([])
    await retry.click()
    await page.locator('.popover').getByRole('button', { name: 'Retry', exact: true }).click()
    await hasText(page, '.strip', /Retried VIOLATED_CONSTRAINT.*1,284 inserted/)
    expect(api.asked).toEqual([{ code: 'VIOLATED_CONSTRAINT', reason: 'Constraint `amount_is_positive`' }])
    expect(await retry.count()).toBe(0)
    await page.getByRole('button', { name: 'Retry 01a1fb4e' }).first().click()
    await page.locator('.popover').getByRole('button', { name: 'Retry', exact: true }).click()
    await expect.poll(() => api.asked.length).toBe(2)
    expect(api.asked[1]).toEqual({ id: '01a1fb4e-a9e7-7c93-8c9d-f8683da79000' })
  })

  it('keeps the last figures while there are none, and says since when', async () => {
    const api = new FakeQueryApi()
    const page = await visit('/pipeline', { url: await start(api) })
    await expectText(page, 'ClickHouse has taken every row')
    api.before = () => refuse(503, 'queue_unavailable', 'The queue is unavailable', 'Redis does not answer.')
    await hasText(page, '[role=alert]', /Redis does not answer.*This is what was known at/)
    await hasText(page, '.figures', /4\d,\d{3}\s*accepted/)
    api.before = () => undefined
    await page.locator('[role=alert]').first().waitFor({ state: 'detached' })
    api.before = (operation) => {
      if (operation === 'pipeline') refuse(503, 'queue_unavailable', 'The queue is unavailable', 'Wait.')
    }
    await page.reload()
    await hasText(page, '.blank', 'The queue is unavailable')
  })

  it('shows each page only to those who may see it', async () => {
    const api = new FakeQueryApi()
    api.scopes = ['read']
    const url = await start(api)
    const page = await visit('/pipeline', { url })
    await expectText(page, 'needs a key with the scope “admin”')
    expect(await page.getByRole('link', { name: 'Pipeline' }).count()).toBe(0)
    await page.keyboard.press('b')
    await row(page, 0).waitFor()
    api.scopes = ['admin']
    await page.goto(`${url}/?q=secret`)
    await expectText(page, 'Nothing needs attention')
    expect(await page.getByRole('link', { name: 'Entries' }).count()).toBe(0)
  })

  it.each(['dark', 'light'] as const)('has a pipeline that axe finds no fault with, %s', async (theme) => {
    const api = new FakeQueryApi()
    const url = await start(api)
    await expectNoViolations(await visit('/pipeline', { url, theme }))
    api.isInTrouble = true
    api.groups = fakeGroups(Date.now())
    const page = await visit('/pipeline?group=CANNOT_PARSE_DATETIME', { url, theme })
    await page.locator('.letters details[open]').waitFor()
    await page.getByRole('button', { name: 'Retry all' }).first().click()
    await expectNoViolations(page)
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await expectNoViolations(page)
    api.before = () => refuse(503, 'queue_unavailable', 'The queue is unavailable', 'Redis does not answer.')
    await page.locator('.pipeline.old').waitFor()
    await expectNoViolations(page)
    api.before = () => undefined
    api.scopes = []
    await expectNoViolations(await visit('/pipeline', { url, theme }))
  })

  it.each(['dark', 'light'] as const)('has nothing that axe finds fault with, %s', async (theme) => {
    const page = await visit('/?from=-1h', { theme })
    await page.locator('.facet-value', { hasText: 'http.status' }).waitFor()
    await row(page, 4).click()
    await page.locator('#details .pair').first().waitFor()
    await expectNoViolations(page)
    for (const key of ['t', 'Escape', 'v', 'Escape', 'w']) await page.keyboard.press(key)
    await expectNoViolations(page)
    await page.keyboard.press('Escape')
    await search(page, 'level:error (')
    await expectNoViolations(page)
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await expectNoViolations(page)
    await expectNoViolations(await visit('/?live=true', { theme }))
    await expectNoViolations(await visit('/', { theme, signedIn: false }))
  })
})
