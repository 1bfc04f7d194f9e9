import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { Fleet } from '@sluice/harness/fleet'

/** A fleet whose ClickHouse can reject rows with a code that is not listed. */
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
    return new RejectingFleet(await Fleet.start())
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
