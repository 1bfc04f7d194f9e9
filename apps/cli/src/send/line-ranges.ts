import { InvalidArgumentError } from 'commander'

/** Lines of the whole input: all files, one after the other. The first line is 1, and both ends are included. */
export interface LineRange {
  readonly first: number
  readonly last: number
}

/** Parses `58500`, for the first lines, or ranges such as `1-200,301-400`. @returns merged ranges @throws InvalidArgumentError */
export function parseLineRanges(value: string): LineRange[] {
  const ranges = (/^\d{1,15}$/.test(value) ? [`1-${value}`] : value.split(',')).map((range) => {
    const [, first = '', last = ''] = /^(\d{1,15})-(\d{1,15})$/.exec(range) ?? []
    return { first: Number(first), last: Number(last) }
  })
  // 0 as a number of lines is an empty range.
  if (ranges.some(({ first, last }) => first < 1 || (first > last && value !== '0')))
    throw new InvalidArgumentError('It must be a number of lines, or ranges such as 1-200,301-400.')
  return mergeRanges(ranges)
}

export function formatLineRanges(ranges: readonly LineRange[]): string {
  const [range, ...others] = ranges
  if (range?.first === 1 && others.length === 0) return String(range.last)
  return ranges.map(({ first, last }) => `${first}-${last}`).join(',')
}

/** The lines that must not be sent again: lines of earlier runs, and all lines up to `handled` except for the `unanswered` ones. */
export function linesToSkip(
  handled: number,
  unanswered: readonly LineRange[],
  skipped: readonly LineRange[],
): LineRange[] {
  const failed = unanswered.toSorted((a, b) => a.first - b.first)
  const starts = [1, ...failed.map(({ last }) => last + 1)]
  const ends = [...failed.map(({ first }) => first - 1), handled]
  return mergeRanges([...skipped, ...starts.map((first, index) => ({ first, last: ends[index] ?? handled }))])
}

function mergeRanges(ranges: readonly LineRange[]): LineRange[] {
  const merged: LineRange[] = []
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = merged.at(-1)
    if (range.last < range.first) continue
    if (before === undefined || range.first > before.last + 1) merged.push(range)
    else merged[merged.length - 1] = { first: before.first, last: Math.max(before.last, range.last) }
  }
  return merged
}
