import { expect, test } from 'vitest'
import { examples } from './examples.ts'
import { entryTextsOf } from './support.ts'

/** Beginnings of all formats, each up to a place where a part of any length may follow. */
const beginnings = [
  ...(
    '|[|{"a":|INFO|\u001B[36m|level=info msg="|10:00:00 [|I1120 10:00:00.123456 |2026-11-20 10:00:00 |' +
    '2026-11-20 10:00:00,123 INFO |2026-11-20T10:00:00.123+01:00 |[2026-11-20 10:00:00|' +
    '2026-11-20 10:00:00 INFO 1 --- [|2026-11-20 10:00:00 - |Nov 20 10:00:00 host |Nov 20 10:00:00 host app: |' +
    '<34>1 2026-11-20T10:00:00Z h a 1 m [x@1 |1.2.3.4 - - [20/Nov/2026:10:00:00 +0000] "|1.2.3.4 - "|' +
    '[Fri Nov 20 10:00:00 2026] [error] [client |2026/11/20 10:00:00 [error] 1#2: x, client: '
  ).split('|'),
  ...examples.map(([, line]) => line.slice(0, -12)),
]
const repeated = [...' a1[{":|'.split(''), '[a', '\\"', 'a:', ' a', '- ', 'a.', 'a=b ', ' a="b"', '\u001B[']
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
        const startedAtMs = performance.now()
        entryTextsOf(line)
        if (performance.now() - startedAtMs > LINE_MS_MAX) slow.push(`${beginning}${part}…${ending}`)
      }
    }
  }
  expect(slow).toEqual([])
})

test('many lines of one record take a time in proportion to their number', () => {
  const startedAtMs = performance.now()
  entryTextsOf(`2026-11-20 10:00:00 ERROR Traceback (most recent call last):\n${'  x\n'.repeat(100_000)}`)
  expect(performance.now() - startedAtMs).toBeLessThan(5_000)
})
