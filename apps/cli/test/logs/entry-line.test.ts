import { describe, expect, test } from 'vitest'
import { jsonLine, textLines } from '../../src/logs/entry-line.ts'
import type { LogRow } from '../../src/logs/log-source.ts'
import { painter } from '../../src/terminal.ts'

const row: LogRow = {
  id: '01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2',
  project_id: 'demo',
  timestamp: '2026-11-20 22:43:01.123456',
  received_at: '2026-11-20 22:43:02.000',
  level: 'error',
  service: 'web',
  environment: '',
  source: '',
  message: 'it broke',
  url: '',
  pathname: '',
  stack: '',
  metadata_text: '{"user":7}',
}

describe('textLines', () => {
  test('have no control characters, whatever the entry contains', () => {
    const evil = '\u001B]0;title\u0007\r\n\u009B2J'
    const entry = { level: evil, service: evil, message: evil, metadata_text: '{"\u009B":1}', stack: evil }
    const line = textLines({ ...row, ...entry }, painter(false), true).join('')
    // oxlint-disable-next-line no-control-regex -- it must match control characters, to find those that are left
    expect(line).not.toMatch(/[\u0000-\u001F\u007F-\u009F]/)
  })
})

describe('jsonLine', () => {
  test('has the field names that clients send, without absent fields', () => {
    expect(JSON.parse(jsonLine(row))).toEqual({
      id: row.id,
      projectId: 'demo',
      timestamp: '2026-11-20T22:43:01.123456Z',
      receivedAt: '2026-11-20T22:43:02.000Z',
      level: 'error',
      service: 'web',
      message: 'it broke',
      metadata: { user: 7 },
    })
  })
})
