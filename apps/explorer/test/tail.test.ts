import { expect, it } from 'vitest'
import { EventReader } from '../src/tail.ts'

const stream =
  ': here\n\nid: 1\nevent: entries\ndata: {"a":\ndata: 1}\n\nid: 2\r\nevent: complete\r\ndata: {}\r\n\r\n'

it('reads events, wherever the pieces of the stream end', () => {
  for (let size = 1; size <= stream.length; size += 1) {
    const reader = new EventReader()
    const events = []
    for (let at = 0; at < stream.length; at += size) events.push(...reader.read(stream.slice(at, at + size)))
    expect(events).toEqual([
      { name: 'entries', data: '{"a":\n1}' },
      { name: 'complete', data: '{}' },
    ])
    expect(reader.lastId).toBe('2')
  }
})

it('continues after the last whole event', () => {
  const reader = new EventReader()
  reader.read('id: 1\nevent: entries\ndata: {}\n\nid: 2\nevent: entries\ndata: {"ent')
  reader.reconnect()
  expect(reader.lastId).toBe('1')
  expect(reader.read('id: 3\nevent: entries\ndata: {}\n\n')).toEqual([{ name: 'entries', data: '{}' }])
})
