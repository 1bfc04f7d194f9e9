import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { chunkAttributes } from '../apps/api/src/chunks/chunk-span.ts'
import { requestAttributes } from '../apps/api/src/traces/request-traces.ts'
import { batchAttributes } from '../apps/worker/src/batch-spans.ts'

it('docs/traces.md describes each attribute of a span, and no other', async () => {
  const document = await readFile(new URL('../docs/traces.md', import.meta.url), 'utf8')
  const described = Array.from(document.matchAll(/^\| `([a-z_]+\.[a-z_.]+)` /gm), ([, name]) => name)
  const names = [requestAttributes, chunkAttributes, batchAttributes].flatMap((each) => Object.values(each))
  expect(described).toHaveLength(new Set(described).size)
  expect(new Set(described)).toEqual(new Set<string>(names))
})
