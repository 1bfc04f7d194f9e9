import { levelOf } from '@sluice/records'
import { type Members, setMember, toEntry } from '../entries.ts'

/** Makes an entry of a log of Datadog: its status is the level, and its tags may have the environment and the service. */
export function entryOfLog(log: Members): Members {
  const { status, ddtags } = log
  const level = typeof status === 'string' && !Object.hasOwn(log, 'level') ? levelOfStatus(status) : undefined
  const record: Members = {}
  for (const name of Object.keys(log)) {
    if (name !== 'status' || level === undefined) setMember(record, name, log[name])
  }
  if (level !== undefined) record['level'] = level
  if (typeof ddtags === 'string') {
    const tags = readTags(ddtags)
    if (!Object.hasOwn(log, 'environment') && !Object.hasOwn(log, 'env')) copyTag(tags, 'env', record)
    if (!Object.hasOwn(log, 'service')) copyTag(tags, 'service', record)
  }
  return toEntry(record)
}

/** The name of a level, as Datadog writes it. */
function levelOfStatus(status: string): string | undefined {
  if (status.toLowerCase() === 'ok') return 'success'
  return levelOf(status) === undefined ? undefined : status
}

/** Longer lists are not searched. */
const TAGS_CHARACTERS_MAX = 8_192

/** `env:prod,version:1.2`. The tags stay in the metadata as well. */
function readTags(text: string): ReadonlyMap<string, string> {
  const tags = text.length > TAGS_CHARACTERS_MAX ? [] : text.split(',')
  return new Map(
    tags.map((tag) => {
      const colon = tag.indexOf(':')
      return [tag.slice(0, Math.max(0, colon)).trim(), tag.slice(colon + 1).trim()]
    }),
  )
}

function copyTag(tags: ReadonlyMap<string, string>, name: string, record: Members): void {
  const value = tags.get(name)
  if (value !== undefined && value !== '') record[name] = value
}
