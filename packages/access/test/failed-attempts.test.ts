import { expect, it } from 'vitest'
import { addressGroup } from '../src/failed-attempts.ts'

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:0DB8:0001:0002::', '2001:db8:1:2'],
  ['::1', '0:0:0:0'],
  ['::ffff:c000:201', '192.0.2.1'],
  ['fe80::1%br-0', 'fe80:0:0:0'],
  ['1', 'none'],
  ['', 'none'],
  ['a'.repeat(10_000), 'none'],
])('the group of an address %s is %s', (address, group) => {
  expect(addressGroup(address)).toBe(group)
})
