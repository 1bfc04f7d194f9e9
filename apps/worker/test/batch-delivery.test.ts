import { ClickHouseError } from '@sluice/clickhouse'
import { seededRandom } from '@sluice/harness'
import { compressRows } from '@sluice/rows'
import { describe, expect, it, vi } from 'vitest'
import { BrokenBatchError } from '../src/batch-delivery.ts'
import { makeChunk, memoryLimitExceeded, ModelWorker, World, type Fate } from './model.ts'

const works: Fate = () => 'works'

function rowsOf(chunkIds: readonly string[], rowsEach: number): string[] {
  return chunkIds.flatMap((id) => Array.from({ length: rowsEach }, (_, i) => `${id}-${i}`))
}

/** The first insert gets no answer, and commits shortly before its time is over. After it, ClickHouse has no memory for another. */
function loseFirstAnswer(world: World): void {
  let attempts = 0
  world.commitsLateAfterMs = () => ((attempts += 1) === 1 ? 59_000 : undefined)
  world.isShortOfMemory = () => attempts > 0
}

describe('BatchDelivery', () => {
  it('inserts the chunks of a batch with one insert, in order', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b', 'c'], 2))
    expect(world.inserts).toHaveLength(1)
    expect(world.jobs.size).toBe(0)
  })

  it('puts a chunk into its batch once, even if it was collected twice', async () => {
    const [a, b] = [makeChunk('a', 2), makeChunk('b', 2)]
    const world = new World([a, b])
    await new ModelWorker(world, works).work([a, b, a])
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('retries an insert with the same token after its answer was lost', async () => {
    const chunks = [makeChunk('a', 2)]
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'lost answer' : 'works')).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a'], 2))
  })

  it('recovers a whole batch from one of its chunks, with the members that were persisted', async () => {
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

  it('inserts no row of a batch twice after ClickHouse has forgotten its token', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies after' : 'works')).work(chunks)
    world.forgetTokens()
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('sends rows with another token if ClickHouse crashed between the token and the rows', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    let crashes = 0
    world.crashesInCommit = () => (crashes += 1) <= 2
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('inserts only the missing rows of a batch that is partly stored', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies before' : 'works')).work(chunks)
    world.rows.push('a-0', 'a-1', 'b-1')
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(['a-0', 'a-1', 'b-1', 'b-0', 'c-0', 'c-1'])
  })

  it('sends nothing for a batch that was confirmed before its worker died', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 3 ? 'dies after' : 'works')).work(chunks)
    const insert = vi.spyOn(world.frameInserter, 'insert')
    await new ModelWorker(world, works).work(chunks)
    expect(insert).not.toHaveBeenCalled()
    expect(world.jobs.size).toBe(0)
  })

  it('does not insert a batch whose chunks were removed from the queue by hand', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies before' : 'works')).work(chunks)
    world.jobs.delete('b')
    await expect(new ModelWorker(world, works).work(chunks.slice(0, 1))).rejects.toThrow(BrokenBatchError)
    expect(world.rows).toEqual([])
  })

  it('stores every row once if an unanswered insert commits after the batch was split', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    loseFirstAnswer(world)
    await new ModelWorker(world, works).work(chunks)
    await world.sleep(120_000)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('stores every row once if an insert of a dead worker commits after its batch was split', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    loseFirstAnswer(world)
    await new ModelWorker(world, (call) => (call === 2 ? 'dies after' : 'works')).work(chunks)
    await new ModelWorker(world, works).work(chunks)
    await world.sleep(120_000)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('splits a batch for which ClickHouse has no memory', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    world.isShortOfMemory = () => true
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.inserts).toHaveLength(4)
  })

  it('never sends a split range as a whole again, even after its worker died and ClickHouse would accept it', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    world.isShortOfMemory = () => true
    // Dies after its first stored insert, which consumes the token of the whole batch.
    const dying: Fate = () => (world.inserts.length > 0 ? 'dies before' : 'works')
    await new ModelWorker(world, dying).work(chunks)
    expect((await world.ledger.read('batch-1'))?.splits).toEqual(new Set(['all']))
    world.isShortOfMemory = () => false
    await new ModelWorker(world, works).work(chunks)
    // The first row consumes the token of the whole batch.
    expect(world.inserts.map(({ token }) => token)).toEqual(['batch-1', 'batch-1/0-2', 'batch-1/2-4'])
    expect(world.inserts[0]?.rows).toBe(1)
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
  })

  it('inserts no row twice if ClickHouse rejects a batch but keeps the rows of one partition', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    let rejections = 0
    world.isShortOfMemory = () => {
      rejections += 1
      if (rejections === 1) world.rows.push('a-1', 'b-0')
      return rejections === 1
    }
    await new ModelWorker(world, works).work(chunks)
    expect(world.rows).toEqual(['a-1', 'b-0', 'a-0', 'b-1'])
  })

  it('inserts a batch by parts if another worker has split it while this one was frozen', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    const owners = await world.ledger.claim('batch-0', ['a', 'b'])
    expect(owners).toEqual(['batch-0', 'batch-0'])
    // After this worker has read the batch, another worker splits it and sends a part of it.
    const { read } = world.ledger
    vi.spyOn(world.ledger, 'read').mockImplementationOnce(async (batchId) => {
      const record = await read(batchId)
      await world.ledger.recordSplit('batch-0', 'all')
      await world.frameInserter.insert([compressRows('\t\t\ta-0\n\t\t\ta-1\n')], 'batch-0/0-2')
      return record
    })
    await new ModelWorker(world, works).work(chunks)
    // The first missing row consumes the token of the whole batch.
    expect(world.inserts.map(({ token }) => token)).toEqual(['batch-0/0-2', 'batch-0', 'batch-0/2-4'])
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
  })

  it.each([true, false])(
    'does not confirm an insert that was ignored because another worker split the batch (atomic tokens: %s)',
    async (areTokensAtomic) => {
      const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
      const world = new World(chunks)
      const { insert } = world.frameInserter
      // While the first insert is on the network, another worker splits the batch, and dies after it has consumed the token.
      vi.spyOn(world.frameInserter, 'insert').mockImplementationOnce(async (...args) => {
        world.isShortOfMemory = () => true
        const dying: Fate = () => (world.inserts.length > 0 ? 'dies before' : 'works')
        await new ModelWorker(world, dying, areTokensAtomic).work(chunks)
        world.isShortOfMemory = () => false
        await insert(...args)
      })
      await new ModelWorker(world, works, areTokensAtomic).work(chunks)
      expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
      expect(world.jobs.size).toBe(0)
    },
  )

  it('recovers one batch at a time', async () => {
    const chunks = ['a', 'b', 'c'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    for (const { id } of chunks) await world.ledger.claim(`batch-${id}`, [id])
    const load = vi.spyOn(world.jobs, 'get')
    const loaded: number[] = []
    const { insert } = world.frameInserter
    vi.spyOn(world.frameInserter, 'insert').mockImplementation(async (...args) => {
      loaded.push(load.mock.calls.length)
      await insert(...args)
    })
    await new ModelWorker(world, works).work(chunks)
    expect(loaded).toEqual([1, 2, 3])
    expect(world.rows).toEqual(rowsOf(['a', 'b', 'c'], 2))
  })

  it('does not treat a rejected lookup as a rejection of the rows', async () => {
    const chunks = [makeChunk('a', 2)]
    const world = new World(chunks)
    await world.ledger.claim('batch-0', ['a'])
    vi.spyOn(world.storedRows, 'find').mockRejectedValueOnce(memoryLimitExceeded())
    await new ModelWorker(world, works).work(chunks)
    expect(world.inserts.map(({ token }) => token)).toEqual(['batch-0'])
  })

  it('does not split a batch that another worker has inserted in the meantime', async () => {
    const chunks = ['a', 'b'].map((id) => makeChunk(id, 2))
    const world = new World(chunks)
    let rejections = 0
    world.isShortOfMemory = () => (rejections += 1) === 1
    const { recordSplit } = world.ledger
    const find = vi.spyOn(world.storedRows, 'find')
    vi.spyOn(world.ledger, 'recordSplit').mockImplementation(async (batchId, range) => {
      // This worker is frozen here until another one has delivered the batch.
      await new ModelWorker(world, works).work(chunks)
      find.mockClear()
      return recordSplit(batchId, range)
    })
    await new ModelWorker(world, works).work(chunks)
    expect(rejections).toBe(2)
    expect(find).not.toHaveBeenCalled()
    expect(world.rows).toEqual(rowsOf(['a', 'b'], 2))
    expect(world.jobs.size).toBe(0)
  })

  it('dead-letters only the rejected rows, and inserts their neighbours', async () => {
    const chunks = [makeChunk('a', 7), makeChunk('b', 9, [4]), makeChunk('c', 3, [0, 2])]
    const world = new World(chunks)
    await new ModelWorker(world, works).work(chunks)
    expect(world.deadLetters.toSorted()).toEqual(['poison-b-4', 'poison-c-0', 'poison-c-2'])
    expect(world.rows).toHaveLength(16)
    expect(new Set(world.rows).size).toBe(16)
  })

  it('dead-letters a chunk that cannot be decompressed as a whole', async () => {
    const broken = { ...makeChunk('a', 2, [0]), frame: Buffer.from('not zstd') }
    const chunks = [broken, makeChunk('b', 2, [1])]
    const world = new World(chunks)
    // ClickHouse rejects such a frame; the model alone would not.
    const { insert } = world.frameInserter
    vi.spyOn(world.frameInserter, 'insert').mockImplementation(async (frames, token) => {
      if (frames.some((frame) => frame.equals(broken.frame))) {
        throw new ClickHouseError({ message: 'zstd', code: '561', type: 'ZSTD_DECODER_FAILED' })
      }
      await insert(frames, token)
    })
    await new ModelWorker(world, works).work(chunks)
    expect(world.deadLetters.toSorted()).toEqual([broken.frame.toString('base64'), 'poison-b-1'].toSorted())
    expect(world.rows).toEqual(['b-0'])
  })
})

describe('BatchDelivery with random failures', () => {
  it('stores every row once, and every rejected row as one dead letter', async () => {
    for (let seed = 1; seed <= 600; seed += 1) {
      const { sent, stored, jobsLeft } = await runSchedule(seed)
      expect(jobsLeft, `seed ${seed}`).toBe(0)
      expect(stored.toSorted(), `seed ${seed}`).toEqual(sent.toSorted())
    }
  })
})

/** Each round, a worker may die before its batch is done. The batch with the most rejected rows needs the most rounds. */
const ROUNDS_MAX = 5_000
/** Longer than any timeout: ten minutes after an insert was given up, it may still commit. */
const LATE_MAX_MS = 600_000

/** Lets workers die, fail and lose answers at random until all jobs are completed. */
async function runSchedule(seed: number): Promise<{ sent: string[]; stored: string[]; jobsLeft: number }> {
  const random = seededRandom(seed)
  // The jitter of the backoff comes from the seed as well, so that a failing seed can be repeated.
  vi.spyOn(Math, 'random').mockImplementation(random)
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
  const areTokensAtomic = random() < 0.5
  world.crashesInCommit = () => !areTokensAtomic && random() < 0.05
  world.commitsLateAfterMs = () => (random() < 0.1 ? pick(LATE_MAX_MS) : undefined)
  world.isShortOfMemory = () => random() < 0.2
  for (let round = 0; world.jobs.size > 0 && round < ROUNDS_MAX; round += 1) {
    // Two workers at the same time. They may hold the same chunks: one of them was frozen until its lock had expired.
    const queued = [...world.jobs.values()].filter(() => random() < 0.8)
    const isAlone = random() < 0.5
    const others = queued.filter(() => !isAlone && random() < 0.4)
    await Promise.all(
      [queued, others].map((held) => new ModelWorker(world, fate, areTokensAtomic).work(held)),
    )
    // No worker is sending anything now. After this pause no earlier insert can commit.
    if (random() < 0.3) {
      await world.sleep(LATE_MAX_MS)
      world.forgetTokens()
    }
  }
  await world.sleep(LATE_MAX_MS)
  const stored = [...world.rows, ...world.deadLetters.map((text) => text.replace('poison-', ''))]
  return { sent, stored, jobsLeft: world.jobs.size }
}
