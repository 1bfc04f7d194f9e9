import { expect, test } from 'vitest'
import { logsAddress } from '../src/options.ts'

test.each([
  ['https://logs.example.com', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1/', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1/logs', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1/logs/', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/api', 'https://logs.example.com/api/v1/logs'],
  ['https://logs.example.com/api/v1/logs', 'https://logs.example.com/api/v1/logs'],
  ['https://logs.example.com/v1/v1/logs', 'https://logs.example.com/v1/v1/logs'],
  ['https://logs.example.com/?tenant=a', 'https://logs.example.com/v1/logs?tenant=a'],
  ['http://[::1]:3000', 'http://[::1]:3000/v1/logs'],
])('%s is completed to %s', (url, address) => {
  expect(logsAddress(url)).toBe(address)
})

test.each(['', 'logs.example.com', '/v1/logs', 'ftp://logs.example.com', 'localhost:3000'])(
  '%j is rejected',
  (url) => {
    expect(() => logsAddress(url)).toThrow(TypeError)
  },
)

test('a password in the address is rejected, and not repeated in the message', () => {
  expect(() => logsAddress('https://user:secret@logs.example.com')).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('secret') as string }),
  )
})
