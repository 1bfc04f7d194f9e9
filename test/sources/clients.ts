import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, type ProgramRun, preparedPath, runProgram } from './programs.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const clientFolder = 'test/sources/clients'
const npmModules = preparedPath('sources/npm/node_modules')
const python = preparedPath('sources/python/bin/python')
const otel = preparedPath('otel-examples')

/** Some wait for the API. */
const RUN_DEADLINE_MS = 300_000

/** A program of a page, which sends the records of its standard input: JSON objects with a `message`, one a line. */
export interface Client {
  readonly name: string
  /** From the root of the repository. The other files of its folder are copied too. */
  readonly file: string
  /** For an example: its text by what is inserted after it. */
  readonly insert?: Readonly<Record<string, string>>
  /** Packages of npm, or the Python to run it with. What does not exist is not installed. */
  readonly needs: string
  readonly environment?: (url: string, key: string) => Readonly<Record<string, string>>
}

const otelEnvironment = (url: string, key: string): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${url}/v1/logs`,
  OTEL_EXPORTER_OTLP_LOGS_HEADERS: `Authorization=Bearer%20${key},Sluice-Idempotency=body`,
  OTEL_EXPORTER_OTLP_LOGS_COMPRESSION: 'gzip',
})
const sluiceEnvironment = (url: string, key: string): Record<string, string> => ({
  SLUICE_API_URL: url,
  SLUICE_API_KEY: key,
})
const readInJavaScript = (call: string): string =>
  `for await (const line of (await import('node:readline')).createInterface({ input: process.stdin })) { const { message } = JSON.parse(line); ${call} }\n`
const readInPython = (call: string): string =>
  `import json\nimport sys\nfor line in sys.stdin:\n    ${call}\n`
const page = (name: string, file: string, needs: string): Client => ({
  name,
  file: `${clientFolder}/${file}`,
  needs,
})

export const clients: readonly Client[] = [
  page('@sluice/client', 'sluice-client.mjs', join(root, 'examples/pino/node_modules')),
  {
    name: '@sluice/pino-transport',
    file: 'examples/pino/main.js',
    needs: join(root, 'examples/pino/node_modules'),
    insert: {
      "const request = logger.child({ requestId: 'r-1' })\n": readInJavaScript('logger.warn(message)'),
    },
    environment: sluiceEnvironment,
  },
  {
    name: 'winston with @sluice/client',
    file: 'examples/winston/main.js',
    needs: join(root, 'examples/winston/node_modules'),
    insert: {
      "const request = logger.child({ requestId: 'r-1' })\n": readInJavaScript('logger.warn(message)'),
    },
    environment: sluiceEnvironment,
  },
  {
    name: 'sluice_handler.py',
    file: 'examples/python-logging/main.py',
    needs: python,
    insert: {
      'log = logging.getLogger("checkout.payment")\n': readInPython(
        "log.warning('%s', json.loads(line)['message'])",
      ),
    },
    environment: sluiceEnvironment,
  },
  {
    name: 'OpenTelemetry, JavaScript',
    file: 'examples/otel-js/main.js',
    needs: `${otel}/js/node_modules`,
    insert: {
      "const logger = provider.getLogger('payment')\n": readInJavaScript(
        'logger.emit({ severityNumber: 13, body: message })',
      ),
    },
    environment: otelEnvironment,
  },
  {
    name: 'OpenTelemetry, Python',
    file: 'examples/otel-python/main.py',
    needs: `${otel}/python/bin/python`,
    insert: {
      'log = logging.getLogger("payment")\n': readInPython("log.warning('%s', json.loads(line)['message'])"),
    },
    environment: otelEnvironment,
  },
  {
    name: 'OpenTelemetry, Go',
    file: 'examples/otel-go/main.go',
    needs: `${otel}/go/example`,
    insert: {
      'import (\n': '\t"bufio"\n\t"encoding/json"\n',
      'logger := otelslog.NewLogger("payment", otelslog.WithLoggerProvider(provider))\n': `
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var record struct{ Message string }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			log.Fatal(err)
		}
		logger.Warn(record.Message)
	}
`,
    },
    environment: otelEnvironment,
  },
  page('pino-loki', 'pino-loki.mjs', npmModules),
  page('winston-loki', 'winston-loki.mjs', npmModules),
  page('python-logging-loki', 'loki_client.py', python),
  page('@elastic/elasticsearch', 'elasticsearch.mjs', npmModules),
  page('elasticsearch, Python', 'elasticsearch_client.py', python),
  page('splunk-logging', 'splunk-logging.mjs', npmModules),
  page('splunk-handler', 'splunk_handler_client.py', python),
  page('datadog-api-client, JavaScript', 'datadog.mjs', npmModules),
  page('datadog-api-client, Python', 'datadog.py', python),
]

export const isPrepared = ({ needs }: Client): boolean => existsSync(needs)

export interface ClientOptions {
  readonly url: string
  readonly key: string
  readonly service: string
  /** Whether `Sluice-Idempotency` is sent, if the program sends it. */
  readonly isIdempotent?: boolean
}

/** Copies a program to a folder with its packages, replaces the address, the key and the service, and runs it to its end. */
export async function runClient(
  { file, needs, insert = {}, environment }: Client,
  { url, key, service, isIdempotent = true }: ClientOptions,
  input: Iterable<string> | AsyncIterable<string>,
): Promise<ProgramRun> {
  const folder = preparedPath(`sources/programs/${service}`)
  rmSync(folder, { recursive: true, force: true })
  cpSync(join(root, file, '..'), folder, {
    recursive: true,
    filter: (path) => basename(path) !== 'node_modules',
  })
  if (needs.endsWith('node_modules')) symlinkSync(needs, join(folder, 'node_modules'))
  const { hostname, port } = new URL(url)
  const replacements = {
    'https://logs.example.com': url,
    "host='logs.example.com',": `host='${hostname}', protocol='http',`,
    'port=443': `port=${port}`,
    'slk_…': key,
    "'shop'": `'${service}'`,
    "'checkout'": `'${service}'`,
    '"checkout"': `"${service}"`,
    ...Object.fromEntries(Object.entries(insert).map(([at, text]) => [at, at + text])),
  }
  const adapt = (text: string): string =>
    isIdempotent ? text : text.replace(/sluice-idempotency/i, 'x-unknown')
  const program = join(folder, basename(file))
  let text = readFileSync(program, 'utf8')
  for (const [from, to] of Object.entries(replacements)) text = text.replaceAll(from, to)
  writeFileSync(program, adapt(text))
  const variables = Object.entries({ ...environment?.(url, key), SERVICE: service })
  const run = (command: Command): Promise<ProgramRun> =>
    runProgram(command, Object.fromEntries(variables.map(([name, value]) => [name, adapt(value)])), {
      cwd: folder,
      deadlineMs: RUN_DEADLINE_MS,
      input,
    })
  if (file.endsWith('.js') || file.endsWith('.mjs')) return run([process.execPath, program])
  if (file.endsWith('.py')) return run([needs, program])
  // `go build` needs its caches.
  const build = await runProgram(
    ['go', 'build', '-C', folder, '-o', 'program', '.'],
    process.env as Record<string, string>,
  )
  return build.code === 0 ? run([join(folder, 'program')]) : build
}

const LONG_CHARACTERS = 64_000
/** What a library, an encoder or a proxy might change. */
const texts = [
  'plain',
  'NUL \0 and 😀',
  '{"__proto__":{"n":9007199254740993}}',
  '123456789012345678901234567890',
  '2026-01-02T03:04:05.123456Z',
] as const

/** A message with a number, in which nothing may change. */
export const messageOf = (service: string, number: number): string =>
  `${service}<${number}> ${number % 500 === 499 ? 'x'.repeat(LONG_CHARACTERS) : texts[number % texts.length]} <end>`

/** A line of the input. */
export const inputLine = (service: string, number: number): string =>
  `${JSON.stringify({ message: messageOf(service, number), service, level: 'warning' })}\n`

/** Whether a stored message has the whole message that was sent, as text or as a part of JSON. */
export const isUnchanged = (stored: string, sent: string): boolean =>
  stored.includes(sent) || stored.includes(JSON.stringify(sent).slice(1, -1))
