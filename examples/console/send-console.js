import { format } from 'node:util'

/** The functions of `console` that are sent, and their levels. */
const levels = { debug: 'debug', log: 'log', info: 'info', warn: 'warn', error: 'error', trace: 'debug' }

/**
 * Sends what is printed with `console` to Sluice as well.
 *
 * @param client a SluiceClient. Its `onError` must not print with `console`
 * @returns a function that ends this
 */
export function sendConsole(client) {
  const originals = Object.fromEntries(Object.keys(levels).map((name) => [name, console[name]]))
  // An object that prints when it is formatted would be sent again, without an end.
  let isSending = false
  for (const [name, level] of Object.entries(levels)) {
    console[name] = (...values) => {
      originals[name].apply(console, values)
      if (isSending) return
      isSending = true
      try {
        client.send(toEntry(level, values))
      } catch {
        // A getter or a proxy among the values threw. It was printed, and must not end the program here.
        client.send({ level, message: 'values that cannot be read' })
      } finally {
        isSending = false
      }
    }
  }
  return () => Object.assign(console, originals)
}

function toEntry(level, values) {
  const error = values.find((value) => value instanceof Error)
  const objects = values.filter((value) => typeof value === 'object' && value !== null && value !== error)
  return {
    level,
    message: error !== undefined && values.length === 1 ? error.message : format(...values.map(toText)),
    stack: error?.stack,
    metadata: { ...(objects.length > 0 && { values: objects }), ...(error !== undefined && { error }) },
  }
}

/** The stack trace of an error is a field of its own. */
function toText(value) {
  return value instanceof Error ? String(value) : value
}
