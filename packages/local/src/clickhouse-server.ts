// ClickHouse as a process: `clickhouse-server.ts CONFIG_FILE`. The npm package chdb contains the engine as a library. The
// library's command line function starts the HTTP interface, and then blocks this thread as long as the server runs.
import ffi from 'node:ffi'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** The server runs as long as this query, which never ends. */
const SERVE =
  'SYSTEM START LISTEN HTTP; ' +
  'SELECT sleepEachRow(3) FROM system.numbers SETTINGS max_block_size = 1 FORMAT Null'

const [configFile] = process.argv.slice(2)
if (configFile === undefined) throw new Error('usage: clickhouse-server.ts CONFIG_FILE')

const args = ['clickhouse', `--config-file=${configFile}`, '--multiquery', `--query=${SERVE}`]
const strings = args.map((arg) => Buffer.from(`${arg}\0`))
// A C argv: the address of each argument, and a null at the end.
const argv = Buffer.alloc(8 * (args.length + 1))
strings.forEach((string, index) => argv.writeBigUInt64LE(ffi.getRawPointer(string), 8 * index))

const { functions } = ffi.dlopen(libraryPath(), {
  chdb_query_cmdline: { arguments: ['i32', 'pointer'], return: 'pointer' },
})
functions.chdb_query_cmdline(args.length, ffi.getRawPointer(argv))

function libraryPath(): string {
  const chdb = createRequire(import.meta.url).resolve('chdb/package.json')
  const suffix = process.platform === 'linux' ? '-gnu' : ''
  const library = `@chdb/lib-${process.platform}-${process.arch}${suffix}/package.json`
  const extension = process.platform === 'darwin' ? 'dylib' : 'so'
  return join(dirname(createRequire(chdb).resolve(library)), `libchdb.${extension}`)
}
