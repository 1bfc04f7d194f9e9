import { expect, it } from 'vitest'
import type { Entry, Fetch } from '@sluice/client'
import { EntrySender, Reports } from '../src/entry-sender.ts'

const setup = () => {
  const printed: string[] = []
  const clock = { ms: 0 }
  const print = (report: string): unknown => printed.push(report)
  return { printed, clock, reports: new Reports(print, () => clock.ms) }
}

it('prints the first loss of a kind at once, and gathers the next ones for ten seconds, or until the end', () => {
  const { reports, printed, clock } = setup()
  reports.lost(1, 'dropped: full')
  reports.lost(2, 'rejected: /level')
  clock.ms = 9_999
  reports.lost(5, 'dropped: full')
  expect(printed).toEqual(['1 log entry was dropped: full', '2 log entries were rejected: /level'])
  clock.ms = 10_000
  reports.lost(6, 'dropped: full')
  reports.lost(1, 'rejected: /level')
  reports.end()
  reports.end()
  expect(printed.slice(2)).toEqual(['11 log entries were dropped: full', '1 log entry was rejected: /level'])
})

it('forgets reasons when there are many: the API may give a new one for each entry', () => {
  const { reports, printed } = setup()
  for (let i = 0; i < 1_000; i += 1) reports.lost(1, `reason ${i}`)
  expect(printed.length).toBeLessThanOrEqual(20)
  reports.end()
  expect(printed.at(-1)).toBe('980 log entries were lost for other reasons')
})

/** Sends an entry, and closes the client. */
async function send(respond: () => Response, entry: Entry): Promise<{ bodies: string[]; printed: string[] }> {
  const { reports, printed } = setup()
  const bodies: string[] = []
  const fetch: Fetch = async (_url, { body }) => {
    bodies.push(new TextDecoder().decode(body))
    return respond()
  }
  const options = { url: 'http://a.example', apiKey: 'slk_test', compression: 'none', fetch } as const
  const sender = new EntrySender(options, reports)
  sender.send(entry)
  await sender.client.close({ timeoutMs: 1_000 })
  return { bodies, printed }
}

const accept = (): Response => Response.json({ success: true, accepted: 1, rejected: 0 }, { status: 202 })
const refuse = (): never => {
  throw new Error('connection refused')
}
const reject = (): Response =>
  Response.json({ title: 'Unauthorized', code: 'invalid_api_key' }, { status: 401 })

it('sends an entry with metadata that exceeds a limit, without its large values', async () => {
  const metadata = { user: 7, huge: 'x'.repeat(70_000), list: [1] }
  const { bodies, printed } = await send(accept, { level: 'warn', message: 'large', metadata })
  const reduced = { user: 7, metadataReduced: expect.stringContaining('65536') as string }
  expect(JSON.parse(bodies.join(''))).toMatchObject({ logs: [{ message: 'large', metadata: reduced }] })
  expect(bodies.join('')).not.toMatch(/huge|list/)
  expect(printed).toEqual([])
})

it('reports once that there was never a response', async () => {
  const { printed } = await send(refuse, { level: 'info', message: 'my secret' })
  expect(printed).toEqual([
    'no response so far: connection refused. The transport continues to try.',
    expect.stringContaining('1 log entry was dropped: the application ended'),
  ])
})

it('reports that the API rejects the key, and never prints an entry or the key', async () => {
  const { printed } = await send(reject, { level: 'info', message: 'my secret' })
  expect(printed[0]).toContain('(401)')
  expect(printed.join('')).not.toMatch(/my secret|slk_test/)
})
