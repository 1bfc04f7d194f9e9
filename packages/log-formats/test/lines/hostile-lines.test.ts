import { expect, test } from 'vitest'
import { entriesOf } from '../../src/index.ts'
import { assembler, defaults } from './support.ts'

/** Beginnings of all formats, each up to a place where a part of any length may follow. */
const beginnings = [
  '',
  '2026-11-20 10:00:00 ',
  '2026-11-20 10:00:00,123 INFO ',
  '2026-11-20T10:00:00.123+01:00 ',
  '2026-11-20 10:00:00 UTC [1] ',
  '[2026-11-20 10:00:00',
  'Nov 20 10:00:00 host ',
  '<34>1 2026-11-20T10:00:00Z h a 1 m [x@1 ',
  '1.2.3.4 - - [20/Nov/2026:10:00:00 +0000] "',
  '{"a":',
  'I1120 10:00:00.123456 ',
  '11-20 10:00:00.123  1 2 D ',
  '- 1131566461 2005.11.09 dn228 ',
  'INFO',
  'level=info msg="',
  '2026/11/20 10:00:00 [error] 1#2: x, client: ',
  'web | ',
  'Nov 20, 2026 10:00:00 AM ',
  '2026-11-20 10:00:00 INFO 1 --- [',
  '2026-11-20 10:00:00 1-2  ',
  '2026-11-20 10:00:00 0x1 Error 0x0 ',
  '2026-11-20 10:00:00 - ',
  '[1795168800] unbound[',
  '[1] ',
  '=INFO REPORT==== ',
  'kern  :err   : [',
  '2026-11-20 10:00:00 a=b ',
  '1.2.3.4:5 [20/Nov/2026:10:00:00] ',
  'Nov 20 10:00:00 host app: {',
  'type=A msg=audit(1795168800.123:4): ',
  '000123: ',
  '20-Nov-2026 10:00:00 Europe/',
  '[pid: 1|app: 0|req: 1/1] ',
  'https 2026-11-20T10:00:00Z ',
  'https 2026-11-20T10:00:00Z a 192.0.2.7:5 ',
  '[2026-11-20 10:00:00] "GET ',
  '1795168800.123 1 192.0.2.7 ',
  '192.0.2.7, ',
  'Nov 20 10:00:00 host haproxy[1]: 192.0.2.7:5 [20/Nov/2026:10:00:00] ',
  'Nov 20 10:00:00 host app: [2026-11-20 10:00:00 ',
  'Nov 20 10:00:00 host app: imap',
  'Nov 20 10:00:00 host kubelet: E1120 10:00:00.123456 ',
  '2026-11-20 10:00:00 UTC [1] user=',
  '2026-11-20 10:00:00 ERROR [a,',
  '2026-11-20 10:00:00 [audit] ',
  '[2026-11-20 10:00:00] WARNING[',
  '[0.123s][',
  '{"time":"',
  '\u001B[36m',
]
const repeated = [
  ' ',
  'a',
  '1',
  '[',
  '[a',
  '{',
  '"',
  '\\"',
  ':',
  'a:',
  ' a',
  '- ',
  '|',
  'a.',
  'a=b ',
  ' a="b"',
  '\u001B[',
]
const endings = ['', ']', '"', ':  ', '] "x" 200 1']

/** A line takes about 1 ms. An expression that backtracks would take minutes. */
const LINE_CHARACTERS = 50_000
const LINE_MS_MAX = 2_000

test('no line keeps the parser busy', () => {
  const slow: string[] = []
  for (const beginning of beginnings) {
    for (const part of repeated) {
      for (const ending of endings) {
        const line = `${beginning}${part.repeat(LINE_CHARACTERS / part.length)}${ending}`
        const records = assembler()
        const startedAtMs = performance.now()
        records.push(line, 1)
        const record = records.flush()
        if (record !== undefined) entriesOf(record, defaults)
        if (performance.now() - startedAtMs > LINE_MS_MAX) slow.push(`${beginning}${part}…${ending}`)
      }
    }
  }
  expect(slow).toEqual([])
})

test('many lines of one record take a time in proportion to their number', () => {
  const records = assembler()
  const startedAtMs = performance.now()
  records.push('2026-11-20 10:00:00 ERROR Traceback (most recent call last):', 1)
  for (let number = 2; number < 100_000; number += 1) records.push('  x', number)
  expect(performance.now() - startedAtMs).toBeLessThan(5_000)
})

test('lines of any number of streams do not wait for their rest', () => {
  const records = assembler()
  for (let number = 1; number <= 10; number += 1)
    records.push(`{"log":"x","stream":"${number}","time":"2026-11-20T10:00:00.1Z"}`, number)
  expect(records.firstOpenLine).toBe(10)
})
