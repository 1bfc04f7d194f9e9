import { OTLP_PROTOBUF } from '../../src/protocols/otlp/otlp.ts'
import { decodeAnswer } from '../protocols/otlp/otlp-api.ts'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

interface DescribedContent {
  readonly schema: object
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export interface DescribedResponse {
  readonly description: string
  readonly headers: Readonly<
    Record<string, { readonly schema: { readonly type?: string; readonly examples?: readonly unknown[] } }>
  >
  readonly content?: Readonly<Record<string, DescribedContent>>
}

export interface Operation {
  readonly operationId?: string
  readonly description?: string
  readonly parameters?: readonly {
    readonly name: string
    readonly schema: object
    readonly example?: unknown
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, DescribedContent>> }
  readonly responses: Readonly<Record<string, DescribedResponse>>
}

/** The part of an OpenAPI document that the tests use. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

/** A response of `inject` or of a raw connection. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  readonly body: string
  /** The body of a response that is binary. */
  readonly bytes?: Buffer
}

/** Headers that frame a message. They are not part of the API. */
const framing: ReadonlySet<string> = new Set([
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
])

/** Validates responses and examples against the schemas of a document. */
export class Described {
  readonly document: Document
  readonly #ajv: Ajv2020
  readonly #validators = new WeakMap<object, ValidateFunction>()
  readonly #ofAnswers = new WeakMap<object, ValidateFunction>()

  constructor(document: Document) {
    this.document = document
    this.#ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true, validateFormats: false })
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      this.#ajv.addSchema(standalone(schema), name)
    }
  }

  /** Every operation with its method and path. */
  get operations(): { name: string; operation: Operation }[] {
    return Object.entries(this.document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
    )
  }

  post(path = '/v1/logs'): Operation {
    const operation = this.document.paths[path]?.['post']
    if (operation === undefined) throw new Error(`${path} is not documented`)
    return operation
  }

  /** The errors of a value under a schema of the document. */
  faults(schema: object, value: unknown): unknown[] {
    return this.#run(this.#validators, schema, standalone, value)
  }

  /** The errors of a response under a schema. Undocumented fields are errors. */
  faultsOfAnswer(schema: object, value: unknown): unknown[] {
    const closed = () => ({ type: 'object', allOf: [standalone(schema)], unevaluatedProperties: false })
    return this.#run(this.#ofAnswers, schema, closed, value)
  }

  /** The parts of a response that an operation does not document: status, media type, body or headers. */
  undescribed(operation: Operation, { status, headers, body, bytes }: Answer): unknown[] {
    const response = operation.responses[status]
    if (response === undefined) return [`status ${status}`]
    const type = String(headers['content-type']).split(';', 1)[0] ?? ''
    const content = response.content?.[type]
    if (content === undefined) return [`media type ${type}`]
    return [
      ...this.faultsOfAnswer(
        content.schema,
        type === OTLP_PROTOBUF ? decodeAnswer(status, bytes) : JSON.parse(body),
      ),
      ...Object.entries(headers).flatMap(([name, value]) => this.#headerFaults(response, name, value)),
      ...('x-request-id' in headers ? [] : ['no header X-Request-Id']),
    ]
  }

  #headerFaults(response: DescribedResponse, name: string, value: unknown): unknown[] {
    if (framing.has(name) || (name === 'connection' && value === 'keep-alive')) return []
    const found = Object.keys(response.headers).find((key) => key.toLowerCase() === name.toLowerCase())
    const schema = found === undefined ? undefined : response.headers[found]?.schema
    if (schema === undefined) return [`header ${name}`]
    return this.faults(schema, schema.type === 'integer' ? Number(value) : value)
  }

  /** @param change of the schema, before it is compiled */
  #run(
    compiled: WeakMap<object, ValidateFunction>,
    schema: object,
    change: (schema: object) => object,
    value: unknown,
  ): unknown[] {
    const validate = compiled.get(schema) ?? this.#ajv.compile(change(schema))
    compiled.set(schema, validate)
    return validate(value) ? [] : (validate.errors ?? [])
  }
}

/** A schema of the document with references to the names of other schemas. */
function standalone(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"')) as object
}
