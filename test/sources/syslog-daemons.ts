import type { SupervisedProcess } from '@sluice/local'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { adaptExample } from './examples.ts'
import type { SourcesInstallation } from './stored-entries.ts'

/** A syslog daemon with the configuration of an example, which receives messages over TCP. */
export interface SyslogDaemon {
  readonly process: SupervisedProcess
  readonly port: number
}

const READY_DEADLINE_MS = 20_000

async function startDaemon(
  sources: SourcesInstallation,
  name: string,
  configure: (folder: string, port: number) => readonly string[],
): Promise<SyslogDaemon> {
  const { supervisor } = sources.installation
  return supervisor.ports.startOn(undefined, async (port) => {
    const folder = join(supervisor.dataDir, `${name}-${port}`)
    mkdirSync(folder)
    const process = await supervisor.start({
      // Stopped together with the API.
      role: 'api',
      name: `${name}-${port}`,
      command: name,
      args: configure(folder, port),
      cwd: folder,
      environment: { PATH: globalThis.process.env['PATH'] ?? '' },
      readyDeadlineMs: READY_DEADLINE_MS,
      isReady: async () => {
        await sendLines(port, [])
        return true
      },
    })
    return { process, port }
  })
}

export function startRsyslog(
  sources: SourcesInstallation,
  apiUrl = sources.installation.apiUrl,
): Promise<SyslogDaemon> {
  return startDaemon(sources, 'rsyslogd', (folder, port) => {
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
  })
}

export function startSyslogNg(
  sources: SourcesInstallation,
  apiUrl = sources.installation.apiUrl,
): Promise<SyslogDaemon> {
  return startDaemon(sources, 'syslog-ng', (folder, port) => {
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
  })
}

/** Sends messages to the port of a daemon, one per line. */
export async function sendLines(port: number, lines: readonly (string | Buffer)[]): Promise<void> {
  const socket = createConnection({ host: '127.0.0.1', port })
  try {
    await once(socket, 'connect')
    const newline = Buffer.from('\n')
    const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), newline]))
    const closed = once(socket, 'close')
    socket.resume()
    socket.end(bytes)
    await closed
  } finally {
    socket.destroy()
  }
}
