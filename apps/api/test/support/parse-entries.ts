import type { Owned } from '@sluice/row-scanner'
import type { Intake, ParsedRequest } from '../../src/intake/intake.ts'

/** Parses a body that must not be an OTLP request. */
export async function parseEntries(
  intake: Intake,
  ...args: Parameters<Intake['parse']>
): Promise<ParsedRequest<Owned>> {
  const parsed = await intake.parse(...args)
  if (parsed === undefined) throw new Error('the body is an OTLP request')
  return parsed
}
