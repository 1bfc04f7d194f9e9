import { pause } from '@sluice/harness'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LosingProxy } from './losing-proxy.ts'
import { isInstalled } from './programs.ts'
import { SourcesInstallation } from './stored-entries.ts'
import { sendLines, startRsyslog, startSyslogNg, type SyslogDaemon } from './syslog-daemons.ts'

/** Enough for several requests, and for a kill in the middle. */
const MESSAGES = 3_000
/** Longer than several attempts. */
const DOWN_MS = 5_000
/** rsyslog waits for its action, then saves its queue. */
const STOP_DEADLINE_MS = 10_000

let sources: SourcesInstallation

beforeAll(async () => {
  sources = await SourcesInstallation.start()
})

afterAll(async () => {
  await sources?.stop()
})

const bad = (text: string): Buffer => Buffer.from(text, 'latin1')

const numbered = (service: string, count: number): string[] =>
  Array.from({ length: count }, (_, number) => `<14>Nov 23 16:00:00 web-1 ${service}[7]: number ${number}`)

const daemons = [
  { daemon: 'rsyslogd', start: startRsyslog, signal: 'SIGTERM' },
  // Its queue on disk also survives a crash.
  { daemon: 'syslog-ng', start: startSyslogNg, signal: 'SIGKILL' },
] as const

describe.each(daemons)('$daemon', ({ daemon, start, signal }) => {
  describe.skipIf(!isInstalled(daemon))('with its example, if it is on the PATH', () => {
    let running: SyslogDaemon

    beforeAll(async () => {
      running = await start(sources)
    })

    it('sends severity, time, program, host, facility and process id', async () => {
      const service = `fields-${daemon}`
      const severities = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug']
      // Facility 16 is local0.
      const lines = severities.map(
        (name, severity) =>
          `<${16 * 8 + severity}>2026-11-23T16:00:0${severity}.123456+02:00 web-1 ${service}[42]: ${name} "quoted" \\ ä`,
      )
      await sendLines(running.port, lines)
      const entries = await sources.entriesOf(service, severities.length)
      expect(entries.map(({ level }) => level)).toEqual([
        'error',
        'error',
        'error',
        'error',
        'warn',
        'info',
        'info',
        'debug',
      ])
      expect(entries[3]).toMatchObject({
        message: 'err "quoted" \\ ä',
        timestamp: '2026-11-23 14:00:03.123456',
        service,
        source: 'server',
        metadata: { host: 'web-1', facility: 'local0', severity: 'err', pid: '42' },
      })
    })

    it('replaces bytes that are not UTF-8, wherever they are', async () => {
      const service = `bytes-${daemon}`
      await sendLines(running.port, [
        bad(`<14>Nov 23 16:00:00 web-1 ${service}[7]: message \xff \xc3`),
        bad(`<14>Nov 23 16:00:00 web-1 ${service}[7\xff]: pid`),
        bad(`<14>1 2026-11-23T16:00:00.123456+02:00 web-1 ${service} 7\xff - - process id`),
        bad('<14>Nov 23 16:00:00 web-1 program\xff[7]: program'),
        bad(`<14>Nov 23 16:00:00 web\xff ${service}[7]: host`),
        bad('\xff\xfe<14>\x00\x01'),
        bad(`<14>Nov 23 16:00:00 web-1 ${service}[7]: last`),
      ])
      const stored = (await sources.entriesOf(service, 3)).map(({ message }) => message)
      expect(stored).toContain('last')
      expect(stored.some((message) => message.startsWith('message '))).toBe(true)
    })

    it('sends every message of the time in which the API was down', async () => {
      const service = `down-${daemon}`
      const lines = numbered(service, MESSAGES)
      await sendLines(running.port, lines.slice(0, MESSAGES / 2))
      await sources.killApi()
      await sendLines(running.port, lines.slice(MESSAGES / 2))
      await pause(DOWN_MS)
      await sources.startApi()
      const { distinct } = await sources.countsOf(service, MESSAGES)
      expect(distinct).toBe(MESSAGES)
    })

    it('stores nearly every message once although each third answer is lost', async () => {
      const service = `lost-${daemon}`
      const proxy = await LosingProxy.open(sources.installation.apiUrl, { every: 3, instead: 'close' })
      try {
        const losing = await start(sources, proxy.url)
        await sendLines(losing.port, numbered(service, MESSAGES))
        await sources.countsOf(service, MESSAGES)
        await losing.process.stop({ deadlineMs: STOP_DEADLINE_MS })
      } finally {
        await proxy.close()
      }
      expect(proxy.lost).toBeGreaterThan(5)
      const { rows, distinct } = await sources.countsOf(service, MESSAGES)
      expect(rows - distinct).toBeLessThan(MESSAGES / 10)
    })

    it('keeps messages over its own restart while the API is down', async () => {
      const service = `restart-${daemon}`
      await sources.killApi()
      await sendLines(running.port, numbered(service, MESSAGES))
      await running.process.stop({ signal, deadlineMs: STOP_DEADLINE_MS })
      await sources.startApi()
      await running.process.start()
      const { distinct } = await sources.countsOf(service, MESSAGES)
      expect(distinct).toBe(MESSAGES)
    })
  })
})
