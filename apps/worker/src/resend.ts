import type { Logger } from '@sluice/runtime'

/**
 * So many other tokens are tried: each takes a server that dies at the wrong moment. What is not to be found after that
 * was hidden or removed by somebody, and would be doubled for ever.
 */
const AGAIN_MAX = 3
/** Far longer than a server needs from the note of a token to the rows: what it began is done after that, or never. */
const SETTLE_MS = 2_000

export interface ResendOptions {
  /** Whether a token is noted together with its rows, or not at all, as in replicated tables. */
  readonly areTokensAtomic: boolean
  readonly sleep: (ms: number) => Promise<unknown>
  readonly logger: Logger
}

/** Something to be stored once. */
interface Resendable<T> {
  readonly all: readonly T[]
  /** What of it is not in ClickHouse. */
  readonly findMissing: () => Promise<readonly T[]>
  readonly insert: (missing: readonly T[], token: string) => Promise<void>
}

/**
 * @param mayBeSent whether it may have been sent before
 * @returns a function of which each call is a try: from the second on it was sent before
 */
export function tries<T>(
  what: Resendable<T>,
  token: string,
  mayBeSent: boolean,
  options: ResendOptions,
): () => Promise<void> {
  let wasSent = mayBeSent
  return async () => {
    if (wasSent) return resend(what, token, options)
    wasSent = true
    await what.insert(what.all, token)
  }
}

/**
 * Brings in what may have been sent before.
 *
 * A token alone does not do. ClickHouse may have forgotten it, when others came in between. And a table that is not
 * replicated notes it before it commits the rows: if the server dies in between, every later insert with that token is
 * taken for one that it has, and the rows are nowhere. So what may have been sent is looked for: before it is sent, for
 * the first case; after it, for the second, and what is missing then is sent with another token.
 */
export async function resend<T>(
  { findMissing, insert }: Pick<Resendable<T>, 'findMissing' | 'insert'>,
  token: string,
  { areTokensAtomic, sleep, logger }: ResendOptions,
): Promise<void> {
  let missing = await findMissing()
  if (missing.length === 0) return
  await insert(missing, token)
  // Another replica may lag: a look would not find what was confirmed.
  if (areTokensAtomic) return
  for (let again = 1; again <= AGAIN_MAX; again += 1) {
    if ((await findMissing()).length === 0) return
    await sleep(SETTLE_MS)
    missing = await findMissing()
    if (missing.length === 0) return
    logger.warn(
      { token, again },
      'ClickHouse has the token of rows that it has not: sending them with another',
    )
    await insert(missing, `${token}/again/${again}`)
  }
}
