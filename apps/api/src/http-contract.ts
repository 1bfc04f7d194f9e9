/** What the routes, the server and the OpenAPI document share. A module without imports, because all three import it. */

/** One resource under two paths. */
export const logsPaths: readonly string[] = ['/v1/logs', '/api/v1/logs']

/** The API keeps a caller's request id only if it is short and printable, and therefore searchable in logs. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9._:/+=@-]{1,128}$/
