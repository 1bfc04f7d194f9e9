import { STATUS_CODES } from 'node:http'
import { problems, type ProblemCode } from '../problems.ts'
import { problemExamples } from './examples.ts'
import { headerRefs, type ResponseHeader } from './headers.ts'
import { schemaRef, type JsonObject } from './schemas.ts'

/** Problems of the health routes alone. */
const healthCodes: ReadonlySet<ProblemCode> = new Set(['not_ready'])

const everyCode = Object.keys(problems) as ProblemCode[]

/** The codes that a post of logs may be refused with. */
const logsCodes = everyCode.filter((code) => !healthCodes.has(code))

const rateLimit = ['RateLimit-Policy', 'RateLimit'] as const satisfies ResponseHeader[]

/** What a refusal says in its headers besides its request id, and what to do about it. */
const refusals: Readonly<Record<number, { headers: readonly ResponseHeader[]; advice?: string }>> = {
  400: { headers: rateLimit, advice: 'Sent again as it is, it will be refused again.' },
  401: { headers: ['WWW-Authenticate'], advice: 'Which of the two it is, is not told.' },
  404: { headers: [] },
  405: { headers: ['Allow'], advice: 'The answer to every method but `POST`.' },
  413: { headers: rateLimit },
  415: { headers: [...rateLimit, 'Accept-Encoding'] },
  422: { headers: rateLimit },
  429: { headers: [...rateLimit, 'Retry-After'], advice: 'Wait for as long as `Retry-After` says.' },
  500: { headers: rateLimit, advice: 'Send it again with backoff, and with the same `Idempotency-Key`.' },
  503: {
    headers: [...rateLimit, 'Retry-After'],
    advice:
      'Send it again after as long as `Retry-After` says, and with the same `Idempotency-Key`: after ' +
      '`queue_unavailable` the entries may have been stored all the same.',
  },
}

/** Every refusal of a post of logs, by its status: what `problems` lists. */
export function logsRefusals(): JsonObject {
  const codesByStatus = Object.groupBy(logsCodes, (code) => problems[code].status)
  return Object.fromEntries(
    Object.entries(codesByStatus).map(([status, codes]) => [status, refusal(Number(status), codes)]),
  )
}

/** The answer of a process that cannot do its work now. */
export function healthRefusals(): JsonObject {
  const codes = everyCode.filter((code) => healthCodes.has(code))
  return Object.fromEntries(
    codes.map((code) => {
      const { status } = problems[code]
      return [status, describe(status, [code], ['X-Request-Id'])]
    }),
  )
}

function refusal(status: number, codes: readonly ProblemCode[]): JsonObject {
  const { headers, advice } = refusals[status] ?? { headers: [] }
  return describe(status, codes, ['X-Request-Id', ...headers, 'Connection'], advice)
}

function describe(
  status: number,
  codes: readonly ProblemCode[],
  headers: readonly ResponseHeader[],
  advice?: string,
): JsonObject {
  const list = codes.map((code) => `- \`${code}\`: ${problems[code].title}`).join('\n')
  return {
    description: [STATUS_CODES[status], list, advice].filter((part) => part !== undefined).join('\n\n'),
    headers: headerRefs(headers),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            schemaRef('Problem'),
            { type: 'object', properties: { status: { const: status }, code: { enum: [...codes] } } },
          ],
        },
        examples: problemExamples(codes),
      },
    },
  }
}
