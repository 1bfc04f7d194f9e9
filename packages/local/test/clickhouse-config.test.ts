import { expect, test } from 'vitest'
import { serverConfig, usersConfig } from '../src/clickhouse-config.ts'

const config = { folder: '/a & <b>', port: 1234, username: 'sluice', password: 'open sesame' }

test('the users file contains only the hash of the password', () => {
  const users = usersConfig(config)
  expect(users).not.toContain('open sesame')
  expect(users).toContain('41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb')
})

test('paths are escaped for XML', () => {
  expect(serverConfig(config, '/users & more.xml')).toContain('<path>/a &#38; &#60;b&#62;</path>')
})

test('the server listens on 127.0.0.1 only', () => {
  expect(serverConfig(config, '/users.xml')).toContain('<listen_host>127.0.0.1</listen_host>')
})
