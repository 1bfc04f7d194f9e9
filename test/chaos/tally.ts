/** How often each name comes, the most frequent first. */
export function tally(names: readonly string[]): Record<string, number> {
  const counts = Map.groupBy(names, (name) => name)
    .entries()
    .map(([name, members]): [string, number] => [name, members.length])
  return Object.fromEntries([...counts].toSorted(([, a], [, b]) => b - a))
}
