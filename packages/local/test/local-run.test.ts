import { expect, test } from 'vitest'
import { describePort } from '../src/local-run.ts'

test.each([
  ['127.0.0.1', 3000, 'EADDRINUSE', 'PORT=3001 npm start'],
  ['127.0.0.1', 65_535, 'EADDRINUSE', 'PORT=3000 npm start'],
  ['127.0.0.1', 80, 'EADDRINUSE', 'PORT=3000 npm start'],
  ['127.0.0.1', 80, 'EACCES', 'PORT=3000 npm start'],
  ['192.0.2.1', 3000, 'EADDRNOTAVAIL', 'HOST=127.0.0.1 npm start'],
  ['no.such.host', 3000, 'ENOTFOUND', 'HOST=127.0.0.1 npm start'],
])('the remedy for %s:%i and %s is %s', (host, port, code, remedy) => {
  expect(describePort(host, port, code)).toMatch(new RegExp(`${remedy}$`))
})
