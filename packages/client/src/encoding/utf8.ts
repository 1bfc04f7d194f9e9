/** Node, Deno and Bun have a faster function than what JavaScript can do. */
const { Buffer } = globalThis as { Buffer?: { byteLength(text: string): number } }

/** The size of a well-formed text in UTF-8. */
export const utf8Bytes: (text: string) => number =
  Buffer === undefined ? countUtf8Bytes : (text) => Buffer.byteLength(text)

/** For runtimes without `Buffer`. */
export function countUtf8Bytes(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i)
    // A surrogate pair has two units and four bytes: two bytes for each half.
    if (unit > 0x7f) bytes += unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2
  }
  return bytes
}

/** Whether a text has more code points than `max`. */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length <= max) return false
  // A code point has at most two units.
  if (text.length > max * 2) return true
  let count = 0
  for (const _ of text) if (++count > max) return true
  return false
}

/**
 * Replaces half surrogate pairs by U+FFFD. They have no UTF-8 form, and the API would reject the entry. They come from texts that were
 * cut in the middle of a character.
 *
 * @param json JSON text from JSON.stringify, which escapes them
 */
export function repairSurrogates(json: string): string {
  if (!json.includes(String.raw`\ud`)) return json
  return json.replaceAll(/\\(?:u(d[89a-f][0-9a-f]{2})|[^])/g, (escape: string, half?: string) =>
    half === undefined ? escape : '\uFFFD',
  )
}
