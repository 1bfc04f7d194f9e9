// A supervisor that tests kill: `supervisor-script.ts DATA_DIR` starts the services and prints a line.
import { startServices } from '../src/index.ts'

await startServices({ dataDir: process.argv[2] })
process.stdout.write('ready\n')
