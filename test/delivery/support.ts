import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { Fleet } from '@sluice/harness/fleet'

/** The environment of workers whose waits are shorter: see shorter-waits.ts. */
export const shorterWaits = { NODE_OPTIONS: `--import=${import.meta.resolve('./shorter-waits.ts')}` }

/** Prints a time that a test measured. No test asserts it, because it depends on how busy the machine is. */
export function report(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** A fleet of two workers whose ClickHouse can reject rows with a code that is not listed. */
export class RejectingFleet {
  readonly fleet: Fleet
  readonly clickhouse: ClickHouseClient

  private constructor(fleet: Fleet) {
    this.fleet = fleet
    this.clickhouse = connectClickHouse(fleet.services.clickhouse, {
      requestTimeoutMs: 5_000,
      connectionsMax: 1,
    })
  }

  static async start(): Promise<RejectingFleet> {
    const rejecting = new RejectingFleet(await Fleet.start({ environment: shorterWaits }))
    for (let worker = 0; worker < 2; worker += 1) await rejecting.fleet.startWorker()
    return rejecting
  }

  /** ClickHouse rejects a row that fails with CANNOT_COMPILE_REGEXP, which is not a listed code. */
  async addRule(pattern: string): Promise<void> {
    await this.clickhouse.command({
      query: `ALTER TABLE logs ADD CONSTRAINT rule CHECK match('', ${pattern}) >= 0`,
    })
  }

  async dropRule(): Promise<void> {
    await this.clickhouse.command({ query: 'ALTER TABLE logs DROP CONSTRAINT rule' })
  }

  async stop(): Promise<void> {
    await this.clickhouse.close()
    await this.fleet.stop()
  }
}
