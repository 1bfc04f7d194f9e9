import { OtlpReceiver } from '@sluice/harness/otlp-receiver'
import { execFile } from 'node:child_process'
import type { LookupFunction } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Span, spanLimits } from '../src/index.ts'
import { OtlpTraces, sharedLookup } from '../src/otlp-traces.ts'

const parent = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const process = { app: 'api', version: '1.2.3', instanceId: 'instance' } as const

let receiver: OtlpReceiver
let warnings: unknown[][]
let traces: OtlpTraces

beforeEach(async () => {
  receiver = await OtlpReceiver.open()
  warnings = []
  const logger = { warn: (...args: unknown[]) => void warnings.push(args) }
  traces = new OtlpTraces(receiver.url, { ...process, logger })
})

afterEach(() => receiver.close())

const close = (): Promise<void> => traces.close(performance.now() + 60_000)
const start = (name = 'a'): Span =>
  traces.start({ name, kind: 'server', startMs: performance.now(), attributes: {} })
const contextOf = (index: number): typeof parent => ({
  ...parent,
  spanId: (index + 1).toString(16).padStart(16, '0'),
})

describe('a span', () => {
  it('is exported with its attributes, its parent and its links', async () => {
    const startMs = performance.now() - 50
    const span = traces.start({
      name: 'the name',
      kind: 'consumer',
      startMs,
      parent,
      links: [contextOf(1)],
      attributes: { text: 'a', number: 5, absent: undefined },
    })
    span.link(contextOf(2))
    span.set({ late: true, text: 'b' })
    span.end()
    await close()
    expect(receiver.spans).toEqual([
      {
        service: 'sluice-api',
        name: 'the name',
        kind: 5,
        traceId: parent.traceId,
        spanId: span.context.spanId,
        parentSpanId: parent.spanId,
        links: [contextOf(1).spanId, contextOf(2).spanId],
        attributes: { text: 'b', number: 5, late: true },
        isError: false,
        startMs: expect.closeTo(performance.timeOrigin + startMs, -2),
        durationMs: expect.closeTo(50, -2),
      },
    ])
    expect(receiver.spans[0]?.durationMs).toBeGreaterThanOrEqual(50)
  })

  it('without a parent begins a trace, is exported while the process runs, and does not change after its end', async () => {
    start().end('error')
    const span = start()
    span.end()
    span.set({ late: 1 })
    span.link(parent)
    span.end('error')
    await vi.waitFor(() => expect(receiver.spans).toHaveLength(2))
    await close()
    expect(new Set(receiver.spans.map(({ traceId }) => traceId)).size).toBe(2)
    expect(receiver.spans).toMatchObject([{ isError: true }, { attributes: {}, links: [], isError: false }])
    for (const { parentSpanId } of receiver.spans) expect(parentSpanId ?? '').toBe('')
  })

  it('has a limited number of links', async () => {
    const { linksMax } = spanLimits
    const links = Array.from({ length: linksMax + 5 }, (_, index) => contextOf(index))
    traces.start({ name: 'a', kind: 'client', startMs: 0, links, attributes: {} }).end()
    await close()
    expect(receiver.spans[0]?.links).toEqual(links.slice(0, linksMax).map(({ spanId }) => spanId))
  })
})

describe('an endpoint', () => {
  it('that rejects spans is reported, with its status and not its response', async () => {
    receiver.mode = 'rejecting'
    start().end()
    await close()
    expect(warnings).toEqual([[{ spans: 1, reason: 'HTTP 401' }, 'traces not exported']])
  })

  it('is looked up with a shared lookup', async () => {
    const asked: string[] = []
    const answers: (() => void)[] = []
    const endpoint = receiver.url.replace('127.0.0.1', 'collector.example')
    const lookup: LookupFunction = (hostname, { all }, callback) => {
      asked.push(hostname)
      const address = '127.0.0.1'
      answers.push(() =>
        all === true ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4),
      )
    }
    const named = new OtlpTraces(endpoint, { ...process, logger: { warn: () => undefined } }, lookup)
    for (let made = 0; made < 2 * spanLimits.exportSpansMax; made += 1)
      named.start({ name: 'a', kind: 'server', startMs: 0, attributes: {} }).end()
    const closed = named.close(performance.now() + 60_000)
    await vi.waitUntil(() => answers.length > 0)
    answers[0]?.()
    await closed
    expect(asked).toEqual(['collector.example'])
    expect(receiver.requests).toBe(2)
  })

  // Otherwise this would take as long as the test may.
  it('that is silent does not delay the end of the process beyond its limit', async () => {
    receiver.mode = 'silent'
    start().end()
    await expect(close()).resolves.toBeUndefined()
  })

  it('that is silent does not delay the end of the process at all when its time has passed', async () => {
    receiver.mode = 'silent'
    start().end()
    const startedMs = performance.now()
    await traces.close(startedMs - 1)
    expect(performance.now() - startedMs).toBeLessThan(spanLimits.closeMaxMs / 2)
    // Otherwise it would be retried after the end of the test.
    await vi.waitFor(() => expect(receiver.requests).toBe(1))
  })

  it('that is silent makes a limited number of spans wait', async () => {
    receiver.mode = 'silent'
    const { waitingMax, exportSpansMax } = spanLimits
    for (let made = 0; made < 2 * waitingMax; made += 1) start(String(made)).end()
    // One export is in flight, and the others wait for it.
    await vi.waitFor(() => expect(receiver.requests).toBe(1))
    receiver.mode = 'accepting'
    await close()
    expect(receiver.spans).toHaveLength(waitingMax)
    expect(receiver.spans[0]?.name).toBe(String(exportSpansMax))
  })
})

it('loads OpenTelemetry only if traces are on', async () => {
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ resolve: (name, context, next) => {
      if (name.startsWith('@opentelemetry/')) loaded.push(name)
      return next(name, context)
    } })
    const { startTraces } = await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)})
    const options = ${JSON.stringify(process)}
    const off = await startTraces(undefined, options)
    const whileOff = loaded.length
    const on = await startTraces('http://127.0.0.1:1', options)
    console.log(JSON.stringify({ off: off === undefined, whileOff, on: on !== undefined, whileOn: loaded.length > 0 }))
  `
  const node = globalThis.process.execPath
  const { stdout } = await promisify(execFile)(node, ['--input-type=module', '--eval', script])
  expect(JSON.parse(stdout)).toEqual({ off: true, whileOff: 0, on: true, whileOn: true })
})

describe('a shared lookup', () => {
  /** The lookups that wait for the name server. */
  let asked: { readonly hostname: string; readonly answer: (address: string) => void }[]
  let answers: string[]
  let lookup: LookupFunction

  beforeEach(() => {
    asked = []
    answers = []
    lookup = sharedLookup((hostname, _options, callback) => {
      asked.push({ hostname, answer: (address) => callback(null, address, 4) })
    })
  })

  const ask = (hostname: string, all = false): void =>
    lookup(hostname, { all }, (error, address) => {
      answers.push(`${hostname} ${error?.message ?? JSON.stringify(address)}`)
    })

  it('a host is looked up once at a time, and all callers get the result', () => {
    for (let i = 0; i < 3; i += 1) ask('collector')
    expect(asked.map(({ hostname }) => hostname)).toEqual(['collector'])
    asked[0]?.answer('10.0.0.1')
    expect(answers).toEqual(Array.from({ length: 3 }, () => 'collector "10.0.0.1"'))
    ask('collector')
    expect(asked).toHaveLength(2)
  })
})
