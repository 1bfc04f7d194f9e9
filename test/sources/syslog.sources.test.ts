import { pause } from '@sluice/harness'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { adaptExample, type Daemon, isInstalled, startDaemon } from './programs.ts'
import { numbered, Sources } from './sources.ts'

/** Enough for several requests, and for a kill in the middle. */
const MESSAGES = 3_000
/** Longer than several attempts. */
const DOWN_MS = 5_000
/** rsyslog waits for its action, then saves its queue. */
const STOP_DEADLINE_MS = 10_000

const sources = Sources.use()

/** Writes the configuration of rsyslog. @returns its arguments */
function configureRsyslog(folder: string, port: number, apiUrl: string): string[] {
  const example = adaptExample('rsyslog/sluice.conf', {
    'server="logs.example.com"': 'server="127.0.0.1"',
    'serverport="443"': `serverport="${new URL(apiUrl).port}"`,
    'useHttps="on"': 'useHttps="off"',
    'slk_…': sources.installation.apiKey,
    '/var/spool/rsyslog': folder,
    // Less than a test waits.
    'action.resumeIntervalMax="30"': 'action.resumeIntervalMax="2"',
  })
  writeFileSync(join(folder, 'sluice.conf'), example)
  const main = [
    `global(workDirectory="${folder}")`,
    'module(load="imtcp")',
    `input(type="imtcp" port="${port}" address="127.0.0.1")`,
    `include(file="${folder}/sluice.conf")`,
  ]
  writeFileSync(join(folder, 'main.conf'), `${main.join('\n')}\n`)
  return ['-n', '-f', join(folder, 'main.conf'), '-i', join(folder, 'pid')]
}

/** Writes the configuration of syslog-ng. @returns its arguments */
function configureSyslogNg(folder: string, port: number, apiUrl: string): string[] {
  const example = adaptExample('syslog-ng/sluice.conf', {
    'https://logs.example.com': apiUrl,
    'slk_…': sources.installation.apiKey,
    // Less than a test waits.
    'time-reopen(5)': 'time-reopen(1)',
  })
  writeFileSync(join(folder, 'sluice.conf'), example)
  const main = [
    '@version: 3.38',
    `options { keep-hostname(yes); };`,
    `source s_src { network(ip("127.0.0.1") port(${port}) transport("tcp")); };`,
    `@include "${folder}/sluice.conf"`,
  ]
  writeFileSync(join(folder, 'main.conf'), `${main.join('\n')}\n`)
  const paths = ['-f', 'main.conf', '-R', 'persist', '-p', 'pid', '-c', 'control'].map((each) =>
    each.startsWith('-') ? each : join(folder, each),
  )
  return ['-F', '--no-caps', ...paths]
}

/** Sends messages to the port of a daemon, one per line. */
async function sendLines(port: number, lines: readonly (string | Buffer)[]): Promise<void> {
  const socket = createConnection({ host: '127.0.0.1', port })
  try {
    await once(socket, 'connect')
    const closed = once(socket, 'close')
    socket.resume()
    socket.end(Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')])))
    await closed
  } finally {
    socket.destroy()
  }
}

const lines = (service: string): string[] =>
  numbered(0, MESSAGES).map((message) => `<14>Nov 23 16:00:00 web-1 ${service}[7]: ${message}`)

const daemons = [
  { daemon: 'rsyslogd', configure: configureRsyslog, signal: 'SIGTERM' },
  // Its queue on disk also survives a crash.
  { daemon: 'syslog-ng', configure: configureSyslogNg, signal: 'SIGKILL' },
] as const

describe.each(daemons)('$daemon', ({ daemon, configure, signal }) => {
  const start = (apiUrl = sources.installation.apiUrl): Promise<Daemon> =>
    startDaemon(
      sources.installation.supervisor,
      daemon,
      (folder, port) => configure(folder, port, apiUrl),
      (port) => sendLines(port, []),
    )

  describe.skipIf(!isInstalled(daemon))('with its example, if it is on the PATH', () => {
    let running: Daemon

    beforeAll(async () => {
      running = await start()
    })

    it('sends severity, time, program, host, facility and process id', async () => {
      const service = `fields-${daemon}`
      const severities = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug']
      // Facility 16 is local0.
      const sent = severities.map(
        (name, severity) =>
          `<${16 * 8 + severity}>2026-11-23T16:00:0${severity}.123456+02:00 web-1 ${service}[42]: ${name} "quoted" \\ ä`,
      )
      await sendLines(running.port, sent)
      const entries = await sources.entriesOf(service, severities.length)
      const levels = entries.map(({ level }) => level)
      expect(levels.join(' ')).toBe('error error error error warn info info debug')
      expect(entries[3]).toMatchObject({
        message: 'err "quoted" \\ ä',
        timestamp: '2026-11-23 14:00:03.123456',
        service,
        source: 'server',
        metadata: { host: 'web-1', facility: 'local0', severity: 'err', pid: '42' },
      })
    })

    it('sends every message of the time in which the API was down', async () => {
      const service = `down-${daemon}`
      await sendLines(running.port, lines(service).slice(0, MESSAGES / 2))
      await sources.killApi()
      await sendLines(running.port, lines(service).slice(MESSAGES / 2))
      await pause(DOWN_MS)
      await sources.startApi()
      const entries = await sources.entriesOf(service, MESSAGES)
      expect(entries.length).toBeGreaterThanOrEqual(MESSAGES)
    })

    it('keeps messages over its own restart while the API is down', async () => {
      const service = `restart-${daemon}`
      await sources.killApi()
      await sendLines(running.port, lines(service))
      await running.process.stop({ signal, deadlineMs: STOP_DEADLINE_MS })
      await sources.startApi()
      await running.process.start()
      const entries = await sources.entriesOf(service, MESSAGES)
      expect(entries.length).toBeGreaterThanOrEqual(MESSAGES)
    })
  })
})
