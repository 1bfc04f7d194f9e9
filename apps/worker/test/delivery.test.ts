import { encodeFrame } from '@sluice/schema'
import { describe, expect, it, vi } from 'vitest'
import { BrokenBatchError } from '../src/delivery.ts'
import { seededRandom } from '../../../test/chaos/random.ts'
import { makeChunk, memoryLimitExceeded, ModelWorker, World, type Fate } from './model.ts'

const works: Fate = () => 'works'

function rowsOf(chunkIds: readonly string[], rowsEach: number): string[] {
  return chunkIds.flatMap((id) => Array.from({ length: rowsEach }, (_, i) => `${id}-${i}`))
}

/** The first insert is given up, and lands just within the time that it has. After it there is no memory for another. */
function giveUpFirstInsert(world: World): void {
  let tries = 0
  world.landsAfterMs = () => ((tries += 1) === 1 ? 59_000 : undefined)
  world.isShortOfMemory = () => tries > 0
}

describe('Delivery', () => {
  it('inserts the chunks of a batch as one insert, in their order', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b', 'c'], 2))
    expect(world.inserts).toHaveLength(1)
    expect(world.jobs.size).toBe(0)
  })

  it('has a chunk in its batch once, though it was collected twice', async () => {
    const [a, b] = [makeChunk('a', 2), makeChunk('b', 2)]
    const world = new World([a, b])
    await new ModelWorker(world, works).work([a, b, a])
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('tries an insert again with the same token when its answer was lost', async () => {
    const chunks = [makeChunk('a', 2)]
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'lost answer' : 'works')).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a'], 2))
  })

  it('recovers a whole batch from one of its chunks, with the content it was written down with', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies after' : 'works')).work(chunks)
    expect(world.jobs.size).toBe(3)
    const later = makeChunk('d', 1)
    world.jobs.set(later.id, later)
    await new ModelWorker(world, works).work([...chunks.slice(1, 2), later])
    expect(world.rows.toSorted()).toEqual([...rowsOf(['a', 'b', 'c'], 2), 'd-0'].toSorted())
    expect(world.inserts.filter(({ rows }) => rows === 6)).toHaveLength(1)
  })

  it('inserts nothing twice of a batch whose token is forgotten', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies after' : 'works')).work(chunks)
    world.forgetTokens()
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('sends rows with another token when ClickHouse died between the token and the rows', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    let deaths = 0
    world.diesInCommit = () => (deaths += 1) <= 2
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('inserts what is missing of a batch of which a part has landed', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies before' : 'works')).work(chunks)
    world.rows.push('a-0', 'a-1', 'b-1')
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(['a-0', 'a-1', 'b-1', 'b-0', 'c-0', 'c-1'])
  })

  it('sends nothing again for a batch that was confirmed before its worker died', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 3 ? 'dies after' : 'works')).work(chunks)
    const insert = vi.spyOn(world.inserter, 'insert')
    await new ModelWorker(world, works).work(chunks)
    expect(insert).not.toHaveBeenCalled()
    expect(world.jobs.size).toBe(0)
  })

  it('refuses to insert a batch whose chunks were removed from the queue by hand', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies before' : 'works')).work(chunks)
    world.jobs.delete('b')
    await expect(new ModelWorker(world, works).work(chunks.slice(0, 1))).rejects.toThrow(BrokenBatchError)
    expect(world.rows).toEqual([])
  })

  it('does not split a batch while a try of it, that was given up, may still land', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    giveUpFirstInsert(world)
    await new ModelWorker(world, works).work(chunks)
    await world.sleep(120_000)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('does not split a recovered batch while a try of the worker that died may still land', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    giveUpFirstInsert(world)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies after' : 'works')).work(chunks)
    await new ModelWorker(world, works).work(chunks)
    await world.sleep(120_000)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('splits a batch for which there is no memory', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    world.isShortOfMemory = () => true
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.inserts).toHaveLength(4)
  })

  it('inserts nothing twice of a refused batch of which the rows of one day came in', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    let refusals = 0
    world.isShortOfMemory = () => {
      refusals += 1
      if (refusals === 1) world.rows.push('a-1', 'b-0')
      return refusals === 1
    }
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(['a-1', 'b-0', 'a-0', 'b-1'])
  })

  it('goes over to the parts of a batch that another worker has split while this one was frozen', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    const owners = await world.ledger.claim('batch-0', ['a', 'b'])
    expect(owners).toEqual(['batch-0', 'batch-0'])
    // This worker reads the batch, and then another one splits it and sends a part of it.
    const { read } = world.ledger
    vi.spyOn(world.ledger, 'read').mockImplementationOnce(async (batchId) => {
      const record = await read(batchId)
      await world.ledger.recordSplit('batch-0', 'all')
      await world.inserter.insert([encodeFrame('\t\t\ta-0\n\t\t\ta-1\n')], 'batch-0/0-2')
      return record
    })
    await new ModelWorker(world, works).work(chunks)
    expect(world.inserts.map(({ token }) => token)).toEqual(['batch-0/0-2', 'batch-0/2-4'])
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
  })

  it('recovers one batch at a time', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    for (const { id } of chunks) await world.ledger.claim(`batch-${id}`, [id])
    const load = vi.spyOn(world.jobs, 'get')
    const loaded: number[] = []
    const { insert } = world.inserter
    vi.spyOn(world.inserter, 'insert').mockImplementation(async (...args) => {
      loaded.push(load.mock.calls.length)
      await insert(...args)
    })
    await new ModelWorker(world, works).work(chunks)
    expect(loaded).toEqual([1, 2, 3])
    expect(world.rows).toEqual(rowsOf(['a', 'b', 'c'], 2))
  })

  it('takes a look that ClickHouse refuses for no refusal of the rows', async () => {
    const chunks = [makeChunk('a', 2)]
    const world = new World(chunks)
    await world.ledger.claim('batch-0', ['a'])
    vi.spyOn(world.storedRows, 'find').mockRejectedValueOnce(memoryLimitExceeded())
    await new ModelWorker(world, works).work(chunks)
    expect(world.inserts.map(({ token }) => token)).toEqual(['batch-0'])
  })

  it('does not split a batch that another worker has inserted meanwhile', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    let refusals = 0
    world.isShortOfMemory = () => (refusals += 1) === 1
    const { recordSplit } = world.ledger
    const find = vi.spyOn(world.storedRows, 'find')
    vi.spyOn(world.ledger, 'recordSplit').mockImplementation(async (batchId, range) => {
      // This worker is frozen here for long enough.
      await new ModelWorker(world, works).work(chunks)
      find.mockClear()
      return recordSplit(batchId, range)
    })
    await new ModelWorker(world, works).work(chunks)
    expect(refusals).toBe(2)
    expect(find).not.toHaveBeenCalled()
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('sets a refused row aside alone, and inserts its neighbours', async () => {
    const chunks = [makeChunk('a', 7), makeChunk('b', 9, [4]), makeChunk('c', 3, [0, 2])]
    const world = new World(chunks)
    await new ModelWorker(world, works).work(chunks)
    expect(world.deadLetters.toSorted()).toEqual(['poison-b-4', 'poison-c-0', 'poison-c-2'])
    expect(world.rows).toHaveLength(16)
    expect(new Set(world.rows).size).toBe(16)
  })

  it('sets a chunk that cannot be decompressed aside whole', async () => {
    const broken = { ...makeChunk('a', 2, [0]), frame: Buffer.from('not zstd') }
    const chunks = [broken, makeChunk('b', 2, [1])]
    const world = new World(chunks)
    // The model refuses a frame that it cannot read as ClickHouse does.
    const { insert } = world.inserter
    vi.spyOn(world.inserter, 'insert').mockImplementation(async (frames, token) => {
      if (frames.some((frame) => frame.equals(broken.frame))) {
        const { ClickHouseError } = await import('@clickhouse/client')
        throw new ClickHouseError({ message: 'zstd', code: '561', type: 'ZSTD_DECODER_FAILED' })
      }
      await insert(frames, token)
    })
    await new ModelWorker(world, works).work(chunks)
    expect(world.deadLetters.toSorted()).toEqual([broken.frame.toString('base64'), 'poison-b-1'].toSorted())
    expect(world.rows).toEqual(['b-0'])
  })
})

describe('Delivery, whatever dies and whenever', () => {
  it('stores every row once, and every refused row as one dead letter', async () => {
    for (let seed = 1; seed <= 500; seed += 1) {
      const { sent, stored, jobsLeft } = await liveThrough(seed)
      expect(jobsLeft, `seed ${seed}`).toBe(0)
      expect(stored.toSorted(), `seed ${seed}`).toEqual(sent.toSorted())
    }
  })
})

/** Lets workers die, fail and lose answers at random until every job is completed. */
async function liveThrough(seed: number): Promise<{ sent: string[]; stored: string[]; jobsLeft: number }> {
  const random = seededRandom(seed)
  const pick = (n: number): number => Math.floor(random() * n)
  const chunks = Array.from({ length: 1 + pick(8) }, (_, i) =>
    makeChunk(`c${i}`, 1 + pick(4), random() < 0.2 ? [pick(2)] : []),
  )
  const sent = chunks.flatMap(({ id, rows }) => Array.from({ length: rows }, (_, row) => `${id}-${row}`))
  const world = new World(chunks)
  const fate: Fate = () => {
    const dice = random()
    if (dice < 0.04) return 'dies before'
    if (dice < 0.08) return 'dies after'
    if (dice < 0.13) return 'fails'
    return dice < 0.18 ? 'lost answer' : 'works'
  }
  world.diesInCommit = () => random() < 0.05
  world.landsAfterMs = () => (random() < 0.1 ? pick(59_000) : undefined)
  for (let round = 0; world.jobs.size > 0 && round < 500; round += 1) {
    // Two workers at once, who may hold the same chunks: one of them was frozen past its lock.
    const queued = [...world.jobs.values()].filter(() => random() < 0.8)
    const isAlone = random() < 0.5
    const others = queued.filter(() => !isAlone && random() < 0.4)
    // Not while two have the same batch: see what docs/exactly-once.md says of invariant 5.
    world.isShortOfMemory = () => isAlone && random() < 0.2
    await Promise.all([new ModelWorker(world, fate).work(queued), new ModelWorker(world, fate).work(others)])
    // Nobody is sending anything now, for as long as it takes.
    if (random() < 0.3) {
      await world.sleep(60_000)
      world.forgetTokens()
    }
  }
  await world.sleep(60_000)
  const stored = [...world.rows, ...world.deadLetters.map((text) => text.replace('poison-', ''))]
  return { sent, stored, jobsLeft: world.jobs.size }
}
