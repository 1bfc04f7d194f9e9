import { describe, expect, it } from 'vitest'
import { LABELS_CHARACTERS_MAX, parseLabels } from '../../../src/protocols/loki/stream.ts'
import { NAMES_MAX } from '../../../src/protocols/shippers.ts'

describe('parseLabels', () => {
  it.each<[string, Record<string, string>]>([
    ['{}', {}],
    [' { } ', {}],
    ['{app="x",}', { app: 'x' }],
    ['{ app = "x" , level= "info" }', { app: 'x', level: 'info' }],
    [
      String.raw`{a="q\"b\\n",b="\n\t\u00e9\U0001F600\x41\101\xff\ud800"}`,
      { a: 'q"b\\n', b: '\n\té😀AA\u{FFFD}\u{FFFD}' },
    ],
    ['{a="}",b=",",c="{x=\'y\'}"}', { a: '}', b: ',', c: "{x='y'}" }],
    ['{a=`raw \\n "x"`}', { a: 'raw \\n "x"' }],
    ['{"service.name"="x"}', { 'service.name': 'x' }],
    ['{a="1",a="2"}', { a: '1', a_2: '2' }],
    ['{a=""}', { a: '' }],
  ])('reads %s', (text, labels) => {
    expect(parseLabels(text)).toEqual(labels)
  })

  const malformed =
    '|x|{|}|{a}|{a=}|{a=x}|{a="x"|{a="x}|{a="x" b="y"}|{,}|{a="x"}}|{a="x"} b|{1a="x"}|{a="\n"}|{a=~"x"}'
  it.each(malformed.split('|'))('rejects %j', (text) => {
    expect(parseLabels(text)).toBeUndefined()
  })

  it('has a limit of characters, and of labels, which counts those with the same name', () => {
    const value = 'x'.repeat(LABELS_CHARACTERS_MAX - '{a=""}'.length)
    expect(parseLabels(`{a="${value}"}`)).toEqual({ a: value })
    expect(parseLabels(`{a="${value}x"}`)).toBeUndefined()
    const most = `{${'a="",'.repeat(NAMES_MAX)}`
    expect(Object.keys(parseLabels(`${most}}`) ?? {})).toHaveLength(NAMES_MAX)
    expect(parseLabels(`${most}a=""}`)).toBeUndefined()
  })

  it('keeps hostile names', () => {
    const labels = parseLabels('{__proto__="x",constructor="y"}') ?? {}
    expect(Object.entries(labels)).toEqual(Object.entries({ ['__proto__']: 'x', constructor: 'y' }))
  })
})
