import { encodeLogs, type OtlpAttributes, type OtlpLogRecord } from '@sluice/harness/otlp-logs'
import { descending, rearrange } from '@sluice/harness/rearrange'
import type { Entry } from '@sluice/schema'

const severities: Readonly<Record<Entry['level'], number>> = {
  log: 0,
  debug: 5,
  info: 9,
  success: 9,
  warn: 13,
  error: 17,
}

/**
 * The same entries as OTLP in Protocol Buffers: one resource, with the service of the first entry, and one scope. Fields are written from the
 * last to the first one, as the Collector and Go's libraries write them.
 */
export function otlpBody(entries: readonly Entry[], more: Partial<OtlpLogRecord> = {}): Buffer {
  const [first] = entries
  const body = encodeLogs([
    {
      resource: {
        attributes: {
          'service.name': first?.service ?? 'bench',
          'deployment.environment.name': first?.environment ?? 'production',
        },
      },
      scopeLogs: [
        { scope: { name: 'bench' }, logRecords: entries.map((entry) => ({ ...toRecord(entry), ...more })) },
      ],
    },
  ])
  return rearrange(body, descending)
}

function toRecord({ level, message, timestamp, metadata, stack, url, pathname }: Entry): OtlpLogRecord {
  const columns = { 'exception.stacktrace': stack, 'url.full': url, 'url.path': pathname }
  const attributes = { ...(metadata as OtlpAttributes), ...columns }
  return {
    timeUnixNano: BigInt(Date.parse(timestamp ?? '')) * 1_000_000n,
    severityNumber: severities[level],
    body: message,
    attributes: Object.fromEntries(
      Object.entries(attributes).flatMap(([name, value]) =>
        value === undefined || value === null ? [] : [[name, value]],
      ),
    ),
  }
}
