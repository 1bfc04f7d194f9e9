import { IdSource } from '@sluice/rows'
import { textPrefix, textOfBlocks } from '@sluice/rows/testing'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type Owned, type Rows, Scanner } from '../src/index.ts'

const prefix = textPrefix({ projectId: 'demo', retentionDays: 30, receivedAtMs: 0 })
const body = Buffer.from('{"level":"info","message":"one"}')
const scanner = new Scanner(new IdSource(Date.now), Date.now, { rowsMax: 1, bytesMax: 1 })

// Each line with an expected error is one way to use another request's rows. The compiler rejects it; if it ever accepts
// it, `npm run types` fails because the expected error is missing.
it('does not compile if rows leave the scope of their scan', () => {
  let unknownScope: Rows<unknown> | undefined
  let ownedScope: Rows<Owned> | undefined
  scanner.scan(body, prefix, false, ({ rows }) => {
    // @ts-expect-error: a variable outside the scope
    unknownScope = rows
    // @ts-expect-error: rows with memory of their own
    ownedScope = rows
    ownedScope = rows.copy()
    return { count: rows.count }
  })
  // @ts-expect-error: an asynchronous callback could use the rows after an await
  scanner.scan(body, prefix, false, async ({ rows }) => {
    await turn()
    rows.copy()
  })
  // @ts-expect-error: the result contains the rows
  scanner.scan(body, prefix, false, ({ rows }) => ({ rows }))
  expect(ownedScope?.count).toBe(1)
  expect(unknownScope?.count).toBe(1)
})

it('keeps a copy of rows when the next body is scanned', () => {
  const copied = scanner.scan(body, prefix, false, ({ rows }) => ({ rows: rows.copy() }))
  const before = Buffer.alloc(copied.rows.byteLength)
  copied.rows.copyTo(before, 0)
  scanner.scan(Buffer.from('{"level":"info","message":"two"}'), prefix, false, () => ({}))
  const after = Buffer.alloc(before.length)
  copied.rows.copyTo(after, 0)
  expect(textOfBlocks(before)).toContain('\tone\t')
  expect(after).toEqual(before)
})
