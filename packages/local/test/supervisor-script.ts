// A supervisor that tests kill: `supervisor-script.ts [DATA_DIR]` starts the services and prints their data directory.
import { startServices } from '../src/index.ts'

const services = await startServices({ dataDir: process.argv[2] })
const { dataDir, supervisor } = services
process.stdout.write(`${JSON.stringify({ dataDir, watchdogPid: supervisor.watchdogPid })}\n`)
