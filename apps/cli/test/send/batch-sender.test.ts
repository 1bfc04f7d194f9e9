import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { BatchSender, type Outgoing, sendLimits } from '../../src/send/batch-sender.ts'
import { Tally } from '../../src/send/tally.ts'

const outgoing = (index: number, bytes = 10): Outgoing => ({
  entry: `entry ${index}`,
  bytes,
  origin: `file:${index}`,
})

/** A service that answers when it is told to. */
function setup() {
  const batches: (readonly string[])[] = []
  const answers: { accept: () => void; fail: (error: Error) => void }[] = []
  const notes: string[] = []
  const tally = new Tally((text) => notes.push(text))
  const sender = new BatchSender((entries) => {
    batches.push(entries)
    return new Promise((resolve, reject) => {
      answers.push({ accept: () => resolve({ accepted: entries.length, rejections: [] }), fail: reject })
    })
  }, tally)
  const fill = async (): Promise<void> => {
    for (let index = 0; index < sendLimits.entriesPerBatchMax; index += 1) await sender.add(outgoing(index))
  }
  return { batches, answers, notes, tally, sender, fill }
}

describe('a batch is sent', () => {
  test('when it is full', async () => {
    const { batches, answers, tally, sender, fill } = setup()
    await fill()
    expect(batches.map(({ length }) => length)).toEqual([100])
    answers[0]?.accept()
    await sender.end()
    expect(tally).toMatchObject({ answered: 100, accepted: 100, rejected: 0, unanswered: 0 })
  })

  test('before it is too many bytes', async () => {
    const { batches, answers, sender } = setup()
    for (let index = 0; index < 3; index += 1) {
      await sender.add(outgoing(index, sendLimits.batchBytesMax * 0.4))
    }
    expect(batches).toEqual([['entry 0', 'entry 1']])
    answers[0]?.accept()
    const ended = sender.end()
    await sleep(0)
    answers[1]?.accept()
    await ended
    expect(batches[1]).toEqual(['entry 2'])
  })

  test('alone, if one entry is as many', async () => {
    const { batches, sender } = setup()
    await sender.add(outgoing(0))
    await sender.add(outgoing(1, sendLimits.batchBytesMax * 2))
    await sender.add(outgoing(2))
    expect(batches).toEqual([['entry 0'], ['entry 1']])
  })

  test('when its first entry has waited', async () => {
    const { batches, sender } = setup()
    await sender.add(outgoing(0))
    await sleep(sendLimits.batchAgeMaxMs / 2)
    await sender.add(outgoing(1))
    expect(batches).toEqual([])
    await sleep(sendLimits.batchAgeMaxMs / 2 + 100)
    expect(batches).toEqual([['entry 0', 'entry 1']])
  })
})

test('no more batches are under way than allowed; adding waits', async () => {
  const { batches, answers, sender, fill } = setup()
  for (let batch = 0; batch < sendLimits.batchesInFlightMax; batch += 1) await fill()
  let isFilled = false
  const filling = fill().finally(() => {
    isFilled = true
  })
  await sleep(sendLimits.batchAgeMaxMs + 100)
  expect(batches).toHaveLength(sendLimits.batchesInFlightMax)
  expect(isFilled).toBe(false)

  answers[1]?.accept()
  await filling
  expect(batches).toHaveLength(sendLimits.batchesInFlightMax + 1)
  for (const { accept } of answers) accept()
  await sender.end()
})

test('after a batch failed nothing is sent any more, and all is accounted for', async () => {
  const { batches, answers, tally, sender, fill } = setup()
  await fill()
  await fill()
  answers[0]?.fail(new Error('unauthorized'))
  await sleep(0)
  expect(sender.failed.aborted).toBe(true)
  await sender.add(outgoing(0))
  answers[1]?.accept()
  await expect(sender.end()).rejects.toThrow('unauthorized')
  expect(batches).toHaveLength(2)
  expect(tally).toMatchObject({ answered: 100, accepted: 100, unanswered: 101 })
})
