/** Items of groups, such as projects. Groups take turns: a group with many items does not delay the others. */
export class FairQueue<Item> {
  /** The first group is the next one. None is empty. */
  readonly #groups = new Map<string, Item[]>()
  #size = 0

  /** The number of items of all groups. */
  get size(): number {
    return this.#size
  }

  sizeOf(group: string): number {
    return this.#groups.get(group)?.length ?? 0
  }

  push(group: string, item: Item): void {
    this.#size += 1
    const items = this.#groups.get(group)
    if (items === undefined) this.#groups.set(group, [item])
    else items.push(item)
  }

  /** Removes the first item of the next group. */
  shift(): Item | undefined {
    const [next] = this.#groups
    if (next === undefined) return undefined
    const [group, items] = next
    this.#size -= 1
    const item = items.shift()
    this.#groups.delete(group)
    // The last one now.
    if (items.length > 0) this.#groups.set(group, items)
    return item
  }
}
