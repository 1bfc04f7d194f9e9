import { isPlainObject, type Members, timeOfIso } from '@sluice/records'

/** What a container runtime or another collector has put around a line. */
export interface Wrapper {
  readonly timestamp: string | undefined
  readonly service: string | undefined
  readonly metadata: Readonly<Members>
}

export interface UnwrappedLine {
  /** The line as the program wrote it. */
  readonly text: string
  readonly wrapper: Wrapper | undefined
  /** The runtime has broken the line: the rest is in the next line of the same stream. */
  readonly isPartial: boolean
}

/** Kubernetes: time, stream, `F` for a full line or `P` for a part, text. */
const CRI =
  /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])(?::\S*)? /y
/** `docker logs --timestamps` and `kubectl logs --timestamps`. No program writes nine digits itself. */
const NANOSECONDS = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) /y
/** `docker compose logs`: container and bar. */
const COMPOSE = /([\w.-]{1,100})\s+\| /y
/** The same in colour. */
// oxlint-disable-next-line no-control-regex -- colours begin with a control character
const COLOURED_COMPOSE = /(?:\u001B\[[\d;]{1,20}m){1,3}([\w.-]{1,100})\s+\|(?: \u001B\[0m|\u001B\[0m ?)/y
/** `kubectl logs --prefix`. */
const POD = /\[pod\/([\w.-]{1,253})\/([\w.-]{1,253})\] /y

const DOCKER_START = '{"log":'

/** Takes lines out of what collectors put around them. */
export function unwrap(text: string, parseJson: (text: string) => unknown): UnwrappedLine {
  switch (text.charCodeAt(0)) {
    case 0x7b /* { */:
      return text.startsWith(DOCKER_START) ? unwrapDocker(text, parseJson) : bare(text)
    case 0x5b /* [ */:
      return unwrapPod(text)
    case 0x31 /* 1 */:
    case 0x32 /* 2 */:
      return unwrapTimed(text)
    default:
      return bare(text)
  }
}

/** A line of `docker compose logs`, if it is one. Other texts have bars, too: the caller has to decide. */
export function unwrapCompose(text: string): UnwrappedLine | undefined {
  const expression = text.startsWith('\u001B[') ? COLOURED_COMPOSE : COMPOSE
  const match = text.includes('|') ? matchAtStart(expression, text) : undefined
  if (match === undefined) return undefined
  const [, container = ''] = match
  const inner = unwrapTimed(text.slice(expression.lastIndex))
  return {
    text: inner.text,
    wrapper: {
      timestamp: inner.wrapper?.timestamp,
      service: container.replace(/[-_]\d+$/, ''),
      metadata: { container },
    },
    isPartial: false,
  }
}

function bare(text: string): UnwrappedLine {
  return { text, wrapper: undefined, isPartial: false }
}

function matchAtStart(expression: RegExp, text: string): RegExpExecArray | undefined {
  expression.lastIndex = 0
  return expression.exec(text) ?? undefined
}

function unwrapTimed(text: string): UnwrappedLine {
  const cri = matchAtStart(CRI, text)
  if (cri !== undefined) {
    const [, timestamp, stream, tag] = cri
    return {
      text: text.slice(CRI.lastIndex),
      wrapper: { timestamp, service: undefined, metadata: { stream } },
      isPartial: tag === 'P',
    }
  }
  const nanoseconds = matchAtStart(NANOSECONDS, text)
  if (nanoseconds === undefined) return bare(text)
  return {
    text: text.slice(NANOSECONDS.lastIndex),
    wrapper: { timestamp: nanoseconds[1], service: undefined, metadata: {} },
    isPartial: false,
  }
}

function unwrapPod(text: string): UnwrappedLine {
  const match = matchAtStart(POD, text)
  if (match === undefined) return bare(text)
  const [, pod, container] = match
  const inner = unwrapTimed(text.slice(POD.lastIndex))
  return {
    text: inner.text,
    wrapper: {
      timestamp: inner.wrapper?.timestamp,
      service: container,
      metadata: { pod, container },
    },
    isPartial: false,
  }
}

/** Docker's json-file driver: the line with its newline, the stream and the time. */
function unwrapDocker(text: string, parseJson: (text: string) => unknown): UnwrappedLine {
  const record = parseOrUndefined(text, parseJson)
  if (!isPlainObject(record)) return bare(text)
  const { log, time, ...metadata } = record
  const timestamp = typeof time === 'string' ? timeOfIso(time) : undefined
  // Each stream has a line that waits for its rest: there must not be any number of them.
  const isStream = record['stream'] === 'stdout' || record['stream'] === 'stderr'
  if (typeof log !== 'string' || timestamp === undefined || !isStream) return bare(text)
  const isPartial = !log.endsWith('\n')
  return {
    text: isPartial ? log : log.slice(0, log.endsWith('\r\n') ? -2 : -1),
    wrapper: { timestamp, service: undefined, metadata },
    isPartial,
  }
}

function parseOrUndefined(text: string, parseJson: (text: string) => unknown): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
