import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { Fleet } from '@sluice/harness/fleet'

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
    const rejecting = new RejectingFleet(await Fleet.start())
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
