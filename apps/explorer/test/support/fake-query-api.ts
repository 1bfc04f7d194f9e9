// The query API in memory, with answers as the real one gives them. It also serves apps/explorer/dist. Started as a program, it runs until it
// is ended: node apps/explorer/test/support/fake-query-api.ts [PORT]
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { matcher, parseQuery } from '@sluice/query-language'
import type { DeadLetterGroup, Retry } from '../../src/pipeline.ts'
import { type FakeEntry, fakeEntry, randomFrom } from './fake-entries.ts'
import { fakeGroups, fakePipeline, fakeRetry } from './fake-pipeline.ts'

const dist = fileURLToPath(new URL('../../dist', import.meta.url))
const SAMPLED = 2000
export const READ_KEY = 'slk_read'
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.html': 'text/html',
  '.svg': 'image/svg+xml',
}
/** As apps/query sends it. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; manifest-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

class Refusal extends Error {
  readonly status: number
  readonly body: object
  constructor(status: number, code: string, title: string, more: object = {}) {
    super(title)
    this.status = status
    this.body = { type: 'about:blank', title, status, code, ...more }
  }
}

const stepsMs = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
].map((seconds) => seconds * 1000)
const jsonOf = ({ metadata, ...columns }: FakeEntry): string =>
  `${JSON.stringify(columns).slice(0, -1)},"metadata":${metadata}}`

/** The leaves of parsed metadata by path. */
function leaves(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [[path, typeof value === 'string' ? value : JSON.stringify(value)]]
  return Object.entries(value).flatMap(([name, member]) =>
    leaves(member, path === '' ? name : `${path}.${name}`),
  )
}
const leavesOfEntry = new WeakMap<FakeEntry, Map<string, string>>()
function fieldsOf(entry: FakeEntry): Map<string, string> {
  let fields = leavesOfEntry.get(entry)
  if (fields === undefined) {
    const { metadata, ...columns } = entry
    fields = new Map([
      ...Object.entries(columns),
      ...leaves(JSON.parse(metadata)).map(([path, value]) => [`metadata.${path}`, value] as const),
    ])
    leavesOfEntry.set(entry, fields)
  }
  return fields
}

export function refuse(status: number, code: string, title: string, detail = ''): never {
  throw new Refusal(status, code, title, { detail })
}

export class FakeQueryApi {
  readonly server: Server
  /** Oldest first. */
  readonly entries: FakeEntry[]
  /** New entries a second while somebody follows. */
  tailRate = 20
  /** What happens before each answer of an operation. */
  before: (operation: string) => unknown = () => undefined
  /** Of the key of every session. */
  scopes: readonly string[] = ['read', 'admin']
  isInTrouble = false
  groups: DeadLetterGroup[] = []
  /** A retry ends at the second answer that has it. */
  retry: Retry | null = null
  /** The bodies of retries. */
  readonly asked: unknown[] = []
  readonly #random = randomFrom(7)
  /** The last selection: the pages of a list ask for the same one. */
  #selected: { readonly key: string; readonly entries: FakeEntry[] } = { key: '', entries: [] }

  readonly #nowMs: () => number

  constructor(entries: readonly FakeEntry[] = fakeHour(Date.now()), nowMs = Date.now) {
    this.#nowMs = nowMs
    this.entries = entries.toSorted((a, b) => (a.timestamp < b.timestamp ? -1 : 1))
    this.server = createServer((request, response) => void this.#answer(request, response))
  }

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(port, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake')
    // The explorer takes the time from it.
    response.setHeader('date', new Date(this.#nowMs()).toUTCString())
    try {
      if (!url.pathname.startsWith('/v1/query/')) return this.#file(url.pathname, response)
      const operation = url.pathname.slice('/v1/query/'.length)
      if (operation === 'session' && request.method === 'POST') return await this.#signIn(request, response)
      if (operation === 'session' && request.method === 'DELETE')
        return void response.writeHead(204, { 'set-cookie': 'session=; Path=/; Max-Age=0' }).end()
      if (request.headers.cookie?.includes('session=1') !== true)
        throw new Refusal(401, 'unauthorized', 'The key is not valid')
      await this.before(operation)
      if (operation === 'tail') return this.#tail(url.searchParams, request, response)
      const body =
        operation === 'session'
          ? JSON.stringify({ project_id: 'demo', scopes: this.scopes })
          : await this.#answerTo(operation, url.searchParams, request)
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'internal', String(error))
      response
        .writeHead(refusal.status, { 'content-type': 'application/problem+json' })
        .end(JSON.stringify(refusal.body))
    }
    return undefined
  }

  #file(path: string, response: ServerResponse): void {
    const name = readdirSync(dist).find((file) => `/${file}` === path) ?? 'index.html'
    response.writeHead(200, {
      'content-type': `${types[extname(name)] ?? 'text/plain'}; charset=utf-8`,
      'content-security-policy': POLICY,
    })
    response.end(readFileSync(join(dist, name)))
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if ((JSON.parse(await textOf(request)) as { key?: string }).key !== READ_KEY)
      throw new Refusal(401, 'unauthorized', 'The key is not valid')
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'set-cookie': 'session=1; Path=/; HttpOnly; SameSite=Strict',
      })
      .end(JSON.stringify({ project_id: 'demo', scopes: this.scopes }))
  }

  #matches(text: string): (entry: FakeEntry) => boolean {
    const parsed = parseQuery(text)
    if ('errors' in parsed)
      throw new Refusal(400, 'invalid_query', 'The query cannot be parsed', { errors: parsed.errors })
    const matches = matcher(parsed.query)
    return (entry) => matches(entry)
  }

  /** Matching entries, newest first. */
  #select(parameters: URLSearchParams): FakeEntry[] {
    const [text, from, until] = ['query', 'from', 'until'].map((name) => parameters.get(name) ?? '')
    const key = JSON.stringify([text, from, until])
    if (this.#selected.key === key) return this.#selected.entries
    const matches = this.#matches(text ?? '')
    const entries = this.entries.filter(
      (entry) => (from ?? '') <= entry.timestamp && entry.timestamp < (until ?? '') && matches(entry),
    )
    this.#selected = { key, entries: entries.toReversed() }
    return this.#selected.entries
  }

  async #answerTo(operation: string, parameters: URLSearchParams, request: IncomingMessage): Promise<string> {
    if (operation === 'pipeline') return JSON.stringify(fakePipeline(Date.now(), this.isInTrouble))
    if (operation === 'dead-letters/retry') {
      const choice = JSON.parse(await textOf(request)) as Retry['choice']
      this.asked.push(choice)
      this.retry = fakeRetry(choice, 'waiting', 0)
      return JSON.stringify({ retry: this.retry })
    }
    if (operation !== 'dead-letters') return this.#read(operation, parameters)
    const total = this.groups.reduce((sum, { count }) => sum + count, 0)
    const answer = JSON.stringify({ total, groups: this.groups, retry: this.retry })
    if (this.retry?.state === 'waiting') this.#endRetry(this.retry.choice)
    return answer
  }

  #endRetry(choice: Retry['choice']): void {
    const group = this.groups.find((each) => 'code' in choice && each.code === choice.code)
    this.retry = fakeRetry(choice, 'done', group?.count ?? 1)
    this.groups = this.groups.filter((each) => each !== group)
  }

  #read(operation: string, parameters: URLSearchParams): string {
    const completeUntil = new Date(this.#nowMs() - 600).toISOString()
    if (operation === 'context') return this.#context(parameters, completeUntil)
    const entries = this.#select(parameters)
    if (operation === 'logs') {
      const offset = Number(parameters.get('cursor') ?? 0)
      const end = offset + Number(parameters.get('limit') ?? 100)
      const page = entries.slice(offset, end).map(jsonOf)
      return `{"entries":[${page.join(',')}],"next":${end < entries.length ? `"${end}"` : 'null'},"complete_until":"${completeUntil}"}`
    }
    if (operation === 'histogram')
      return JSON.stringify({ ...histogramOf(entries, parameters), complete_until: completeUntil })
    if (operation === 'export')
      return entries
        .toReversed()
        .map((entry) => `${jsonOf(entry)}\n`)
        .join('')
    const field = parameters.get('field')
    const counts = new Map<string, number>()
    const sample = entries.slice(0, field === null ? SAMPLED : entries.length)
    for (const entry of sample) {
      const own = field === null ? undefined : entry[field as keyof FakeEntry]
      const path = `metadata.${field?.replaceAll('"', '') ?? ''}`
      const found = field === null ? fieldsOf(entry).keys() : [own ?? fieldsOf(entry).get(path)]
      for (const name of found) if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    const sorted = [...counts]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, Number(parameters.get('limit') ?? 1000))
    if (operation === 'fields')
      return JSON.stringify({
        fields: sorted.map(([name, count]) => ({ name, count })),
        sampled: sample.length,
        complete_until: completeUntil,
      })
    return JSON.stringify({
      values: sorted.map(([value, count]) => ({ value, count })),
      total: entries.length,
      complete_until: completeUntil,
    })
  }

  #context(parameters: URLSearchParams, completeUntil: string): string {
    const at = this.entries.find(({ id }) => id === parameters.get('id'))
    if (at === undefined)
      throw new Refusal(404, 'entry_not_found', 'The entry does not exist', {
        detail: 'The project has no such entry.',
      })
    const all =
      parameters.get('same') === 'service'
        ? this.entries.filter(({ service }) => service === at.service)
        : this.entries
    const index = all.indexOf(at)
    const before = Number(parameters.get('before') ?? 20)
    const after = Number(parameters.get('after_count') ?? 20)
    const listOf = (from: number, end: number): string =>
      all.slice(Math.max(0, from), end).map(jsonOf).join(',')
    return `{"before":[${listOf(index - before, index)}],"entry":${jsonOf(at)},"after":[${listOf(index + 1, index + 1 + after)}],"complete_until":"${completeUntil}"}`
  }

  /** The id of an event is the number of entries that came before. */
  #tail(parameters: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    const matches = this.#matches(parameters.get('query') ?? '')
    const from = parameters.get('from')
    const first = this.entries.findIndex(({ received_at: at }) => from !== null && at > from)
    let next = Number(request.headers['last-event-id'] ?? (first < 0 ? this.entries.length : first))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': here\n\n')
    let lastMs = performance.now()
    const timer = setInterval(() => {
      // A timer is late on a busy machine.
      const passedMs = Math.min(1_000, performance.now() - lastMs)
      lastMs = performance.now()
      this.grow(Math.round((this.tailRate * passedMs) / 1_000))
      const found = this.entries.slice(next).filter(matches)
      next = this.entries.length
      if (found.length > 0)
        response.write(`id: ${next}\nevent: entries\ndata: {"entries":[${found.map(jsonOf).join(',')}]}\n\n`)
      response.write(
        `id: ${next}\nevent: complete\ndata: {"complete_until":"${new Date().toISOString()}"}\n\n`,
      )
    }, 100)
    response.on('close', () => clearInterval(timer))
  }

  grow(count: number): void {
    for (let index = 0; index < count; index += 1)
      this.entries.push(fakeEntry(Date.now(), this.entries.length, this.#random))
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}

function histogramOf(entries: readonly FakeEntry[], parameters: URLSearchParams): object {
  const [fromMs, untilMs] = [
    Date.parse(parameters.get('from') ?? ''),
    Date.parse(parameters.get('until') ?? ''),
  ]
  const stepMs =
    stepsMs.find((step) => (untilMs - fromMs) / step <= Number(parameters.get('buckets') ?? 60)) ?? 86_400_000
  const counts = new Map<number, Record<string, number>>()
  for (let at = Math.floor(fromMs / stepMs) * stepMs; at < untilMs; at += stepMs) counts.set(at, {})
  for (const { timestamp, level } of entries) {
    const bucket = counts.get(Math.floor(Date.parse(timestamp) / stepMs) * stepMs)
    if (bucket !== undefined) bucket[level] = (bucket[level] ?? 0) + 1
  }
  const buckets = Array.from(counts, ([at, levels]) => ({ from: new Date(at).toISOString(), counts: levels }))
  return { step_ms: stepMs, buckets, total: entries.length }
}

/** The entries of the last hour: thousands, and a burst of errors. */
export function fakeHour(nowMs: number, count = 9000): FakeEntry[] {
  const random = randomFrom(42)
  // The last burst is eight minutes ago.
  const shiftMs = (nowMs - 480_000) % 2_400_000
  return Array.from({ length: count }, (_, index) => {
    const ms = nowMs - 3_600_000 + Math.floor(((index + random()) / count) * 3_600_000)
    const { id, timestamp, received_at } = fakeEntry(ms, index, randomFrom(index + 1))
    return { ...fakeEntry(ms - shiftMs, index, random), id, timestamp, received_at }
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const api = new FakeQueryApi()
  api.isInTrouble = process.argv.includes('--trouble')
  if (api.isInTrouble) api.groups = fakeGroups(Date.now())
  const address = await api.listen(Number(process.argv[2] ?? 4400))
  process.stdout.write(`${address} with the key ${READ_KEY}\n`)
}
