// `npm run lab -- explorer`: the heap of a page that follows, and its frames while 100,000 rows are scrolled.
import { CommandLine } from '@sluice/harness/command-line'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { launchChromium } from '../support/chromium.ts'
import { FakeQueryApi, fakeHour } from '../support/fake-query-api.ts'

const commandLine = new CommandLine(`npm run lab -- explorer [options]

  --only LIST  of heap,frames; default both
  --minutes N  of the heap; default 10
  --rate N     entries per second that the page follows; default 1000
  --seconds N  of the frames; default 10
  --help       prints this text

The query API is in the memory of this process. Needs a Chromium: tools/chromium.sh unpacks one.
`)
const values = commandLine.read({
  only: { type: 'string', default: 'heap,frames' },
  minutes: { type: 'string', default: '10' },
  rate: { type: 'string', default: '1000' },
  seconds: { type: 'string', default: '10' },
})
const minutes = commandLine.positive('minutes', values.minutes)
const rate = commandLine.positive('rate', values.rate)
const seconds = commandLine.positive('seconds', values.seconds)

const MINUTE_MS = 60_000
const SHOWN_MINUTES = [1, 5]
const LISTED = 100_000
const print = (line: string): void => void process.stdout.write(`${line}\n`)
const browser = await launchChromium()
try {
  if (values.only.includes('heap')) await measureHeap()
  if (values.only.includes('frames')) await measureFrames()
} finally {
  await browser.close()
}
process.exit()

async function visit(api: FakeQueryApi, path: string): Promise<Page> {
  const url = await api.listen()
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  await context.addCookies([{ name: 'session', value: '1', url }])
  const page = await context.newPage()
  await page.goto(url + path)
  await page.locator('#entries[aria-busy=false]').waitFor()
  return page
}

async function measureHeap(): Promise<void> {
  const api = new FakeQueryApi()
  api.tailRate = rate
  const page = await visit(api, '/?live=true')
  const inspector = await page.context().newCDPSession(page)
  const startedMs = performance.now()
  for (const minute of [...SHOWN_MINUTES, minutes].filter((each) => each <= minutes)) {
    await delay(startedMs + minute * MINUTE_MS - performance.now())
    await inspector.send('HeapProfiler.collectGarbage')
    const { usedSize } = await inspector.send('Runtime.getHeapUsage')
    const perS = Math.round((api.entries.length * 1_000) / (performance.now() - startedMs))
    print(`minute ${minute}: heap ${(usedSize / 2 ** 20).toFixed(1)} MB; ${perS} entries/s`)
  }
  await page.close()
  await api.close()
}

async function measureFrames(): Promise<void> {
  const api = new FakeQueryApi(fakeHour(Date.now(), LISTED + 1_000))
  const page = await visit(api, '/?from=-2h&facet=')
  const frames = await page.evaluate(
    async ({ listed, durationMs }) => {
      const list = document.querySelector('#entries')
      if (list === null) throw new Error('there is no list')
      while (Number(list.getAttribute('aria-rowcount')) <= listed) {
        list.scrollTop = list.scrollHeight
        await new Promise<number>(requestAnimationFrame)
      }
      const scrolled = async (pixels: number): Promise<{ perS: number; worstMs: number }> => {
        list.scrollTop = 0
        const startMs = await new Promise<number>(requestAnimationFrame)
        let [lastMs, count, worstMs] = [startMs, 0, 0]
        while (lastMs - startMs < durationMs) {
          list.scrollTop += pixels
          const atMs = await new Promise<number>(requestAnimationFrame)
          worstMs = Math.max(worstMs, atMs - lastMs)
          count += 1
          lastMs = atMs
        }
        return { perS: (count * 1_000) / (lastMs - startMs), worstMs }
      }
      // With a wheel, and with the bar.
      return [await scrolled(120), await scrolled(2_200)]
    },
    { listed: LISTED, durationMs: seconds * 1_000 },
  )
  for (const [i, { perS, worstMs }] of frames.entries())
    print(
      `${i === 0 ? '5' : '100'} rows a frame: ${perS.toFixed(1)} frames/s, the longest ${worstMs.toFixed(0)} ms`,
    )
  await page.close()
  await api.close()
}
