import type { ClickHouseClient } from '@sluice/clickhouse'
import { expect, test } from 'vitest'
import { LogSource } from '../../src/logs/log-source.ts'
import { parseMetadataFilter } from '../../src/logs/metadata-filter.ts'

const INJECTION = "x' OR 1=1"

test('nothing that a user passes is in the SQL of any query: all of it is in the parameters', async () => {
  const sent: { query: string; query_params: Record<string, unknown> }[] = []
  const client = {
    query: async (given: (typeof sent)[number]) => {
      sent.push(given)
      return { json: async () => [], stream: async function* () {} }
    },
  } as unknown as ClickHouseClient
  const filter = {
    level: [INJECTION],
    service: INJECTION,
    environment: [INJECTION],
    search: INJECTION,
    where: parseMetadataFilter(`metadata."${INJECTION}".b=${INJECTION}`),
  }
  const source = new LogSource(client, INJECTION, filter, new AbortController().signal)
  await Array.fromAsync(source.newest({ from: INJECTION, until: INJECTION }, 1))
  await source.hasAfter({ from: INJECTION, until: INJECTION })
  await source.hasEntries()
  await source.newestReceivedMs(0)
  await source.arrivals(0, 1, 'newest')
  await Array.fromAsync(source.entries([{ id: INJECTION, receivedAtMs: 0 }]))

  expect(sent).toHaveLength(6)
  for (const { query, query_params: parameters } of sent) {
    expect(query).not.toContain('OR 1=1')
    expect(query).toContain('project_id = {project:String}')
    expect(parameters['project']).toBe(INJECTION)
  }
  expect(sent[0]?.query_params).toMatchObject({
    level: [INJECTION],
    service: INJECTION,
    environment: [INJECTION],
    search: INJECTION,
    where0value: INJECTION,
    where0path0name0: INJECTION,
    from: INJECTION,
    until: INJECTION,
  })
})
