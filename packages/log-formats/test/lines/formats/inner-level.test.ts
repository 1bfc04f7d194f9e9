import { describe, expect, test } from 'vitest'
import { lostWordsOf, readLine, summaryOf } from '../support.ts'

const time = '2026-11-20T10:00:00Z'

describe('the level at the start of a message of syslog', () => {
  test.each([
    ['sshd[7]: error: connection closed', 'error'],
    ['sshd[7]: fatal: timeout', 'error'],
    ['sshd[7]: debug1: reading', 'debug'],
    ['postfix/smtpd[7]: warning: no name', 'warn'],
    ['NetworkManager[7]: <warn>  [1795168800.1234] down', 'warn'],
    ['NetworkManager[7]: <info> up', 'info'],
    ['shop: [Warn] low', 'warn'],
    ['shop: [warning] low', 'warn'],
    ['shop: Error: failed', 'error'],
    ['dovecot: imap-login: Error: failed', 'error'],
    ['dovecot: imap(frank)<7><a+b>: Fatal: failed', 'error'],
    ['kubelet[7]: E1120 10:00:00.123456    7 kubelet.go:12] failed', 'error'],
    ['kubelet[7]: I1120 10:00:00.123456    7 kubelet.go:12] started', 'info'],
    ['shop[7]: 2026-11-20 10:00:00,123 ERROR failed', 'error'],
    ['shop[7]: 2026-11-20 10:00:00.123  WARN 7 --- [main] c.e.Shop : low', 'warn'],
    ['shop[7]: 2026-11-20 10:00:00.123 [main] INFO  c.e.Shop - started', 'info'],
    ['shop[7]: [2026-11-20 10:00:00 +0000] [7] [INFO] started', 'info'],
    ['mariadbd[7]: 2026-11-20 10:00:00 0 [ERROR] Aborting', 'error'],
    ['nginx: 2026/11/20 10:00:00 [error] 7#7: *1 failed', 'error'],
    ['kernel: <3>[    1.1] failed', 'error'],
  ])('counts: %s', (text, level) => {
    const line = readLine(`Nov 20 10:00:00 web1 ${text}`)
    expect(line).toMatchObject({ time, level, metadata: { host: 'web1' } })
    expect(text.endsWith(`: ${line.message}`)).toBe(true)
  })

  test.each([
    'shop: errors: 0',
    'shop: error rate is 0',
    'shop: no error: done',
    'shop: the [error] of it',
    'shop: 2026-11-20 10:00:00 is the ERROR',
    'shop: imap: is an Error: no',
  ])('is no other word: %s', (text) => {
    expect(readLine(`Nov 20 10:00:00 web1 ${text}`)).not.toHaveProperty('level')
  })
})

test.each([
  ['Nov 20 10:00:00.000 [notice] Bootstrapped 100%', 'info', 'Bootstrapped 100%'],
  ['Nov 20 10:00:00 [WARN] low', 'warn', 'low'],
  ['Nov 20 10:00:00 ERROR: failed', 'error', 'failed'],
  ['[Nov 20 10:00:00] WARN low', 'warn', 'low'],
])('a level may follow the time of syslog, without a host: %s', (text, level, message) => {
  expect(summaryOf(text).slice(1)).toEqual([level, message])
  expect(lostWordsOf(text)).toEqual([])
})
