import { STATUS_CODES } from 'node:http'
import { OTLP_PROTOBUF, rpcCode } from '../protocols/otlp/answers.ts'
import { problems, type ProblemCode } from '../problems.ts'
import { problemExamples } from './examples.ts'
import { headerRefs, type ResponseHeader } from './headers.ts'
import { schemaRef, type JsonObject } from './schemas.ts'

/** Problems that only the health routes return. */
const healthCodes: ReadonlySet<ProblemCode> = new Set(['not_ready'])

const everyCode = Object.keys(problems) as ProblemCode[]

/** The codes of POST requests with logs. */
const logsCodes = everyCode.filter((code) => !healthCodes.has(code))

const rateLimit = ['RateLimit-Policy', 'RateLimit'] as const satisfies ResponseHeader[]

/** The headers of problems by status, in addition to the request id, and advice for the client. */
const headersAndAdvice: Readonly<Record<number, { headers: readonly ResponseHeader[]; advice?: string }>> = {
  400: { headers: rateLimit, advice: 'A retry without changes fails again.' },
  401: {
    headers: ['WWW-Authenticate'],
    advice: 'The response does not distinguish a missing key from an invalid one.',
  },
  403: { headers: rateLimit },
  404: { headers: rateLimit },
  405: { headers: ['Allow'], advice: 'The answer to every method except `POST`.' },
  413: { headers: rateLimit },
  415: { headers: [...rateLimit, 'Accept-Encoding'] },
  422: { headers: rateLimit },
  429: { headers: [...rateLimit, 'Retry-After'], advice: 'Wait for the time in `Retry-After`, then retry.' },
  500: { headers: rateLimit, advice: 'Retry with backoff and with the same `Idempotency-Key`.' },
  503: {
    headers: [...rateLimit, 'Retry-After'],
    advice:
      'Retry after the time in `Retry-After`, and with the same `Idempotency-Key`: after `queue_unavailable` the ' +
      'entries may have been stored.',
  },
}

/** Every problem of POST requests with logs, by status. */
export function logsProblems(): JsonObject {
  const codesByStatus = Object.groupBy(logsCodes, (code) => problems[code].status)
  return Object.fromEntries(
    Object.entries(codesByStatus).map(([status, codes]) => [status, logsProblem(Number(status), codes)]),
  )
}

/** The answer of a process that is not ready. */
export function healthProblems(): JsonObject {
  const codes = everyCode.filter((code) => healthCodes.has(code))
  return Object.fromEntries(
    codes.map((code) => {
      const { status } = problems[code]
      return [status, describe(status, [code], ['X-Request-Id'])]
    }),
  )
}

function logsProblem(status: number, codes: readonly ProblemCode[]): JsonObject {
  const { headers, advice } = headersAndAdvice[status] ?? { headers: [] }
  return describe(status, codes, ['X-Request-Id', ...headers, 'Connection'], advice, {
    [OTLP_PROTOBUF]: {
      schema: schemaRef('RpcStatus'),
      example: { code: rpcCode(status), message: `${codes[0]}: …` },
    },
  })
}

function describe(
  status: number,
  codes: readonly ProblemCode[],
  headers: readonly ResponseHeader[],
  advice?: string,
  otherContent: JsonObject = {},
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
      ...otherContent,
    },
  }
}
