import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { EntrySender, type OutgoingEntry, sendLimits } from '../../src/send/entry-sender.ts'
import { Tally } from '../../src/send/tally.ts'

const outgoing = (index: number, bytes = 10): OutgoingEntry => ({
  entry: `entry ${index}`,
  bytes,
  origin: `file:${index}`,
  line: index + 1,
})

/** A sender, and an API that responds when the test calls `accept` or `fail`. */
function setup() {
  const requests: (readonly string[])[] = []
  const responses: { accept: () => void; fail: (error: Error) => void }[] = []
  const notes: string[] = []
  const tally = new Tally((text) => notes.push(text))
  const sender = new EntrySender((entries) => {
    requests.push(entries)
    return new Promise((resolve, reject) => {
      responses.push({ accept: () => resolve({ accepted: entries.length, rejections: [] }), fail: reject })
    })
  }, tally)
  const fill = async (): Promise<void> => {
    for (let index = 0; index < sendLimits.entriesPerRequestMax; index += 1) await sender.add(outgoing(index))
  }
  return { requests, responses, notes, tally, sender, fill }
}

describe('a request is sent', () => {
  test('when it is full', async () => {
    const { requests, responses, tally, sender, fill } = setup()
    await fill()
    expect(requests.map(({ length }) => length)).toEqual([100])
    responses[0]?.accept()
    await sender.end()
    expect(tally).toMatchObject({ answered: 100, accepted: 100, rejected: 0, unanswered: 0 })
  })

  test('before it exceeds its maximum size', async () => {
    const { requests, responses, sender } = setup()
    for (let index = 0; index < 3; index += 1) {
      await sender.add(outgoing(index, sendLimits.requestBytesMax * 0.4))
    }
    expect(requests).toEqual([['entry 0', 'entry 1']])
    responses[0]?.accept()
    const ended = sender.end()
    await sleep(0)
    responses[1]?.accept()
    await ended
    expect(requests[1]).toEqual(['entry 2'])
  })

  test('with one entry alone, if that entry exceeds the size', async () => {
    const { requests, sender } = setup()
    await sender.add(outgoing(0))
    await sender.add(outgoing(1, sendLimits.requestBytesMax * 2))
    await sender.add(outgoing(2))
    expect(requests).toEqual([['entry 0'], ['entry 1']])
  })

  test('when its first entry has waited long enough', async () => {
    const { requests, sender } = setup()
    await sender.add(outgoing(0))
    await sleep(sendLimits.requestAgeMaxMs / 2)
    await sender.add(outgoing(1))
    expect(requests).toEqual([])
    await sleep(sendLimits.requestAgeMaxMs / 2 + 100)
    expect(requests).toEqual([['entry 0', 'entry 1']])
  })
})

test('the number of requests in flight is limited; adding waits', async () => {
  const { requests, responses, sender, fill } = setup()
  for (let request = 0; request < sendLimits.requestsInFlightMax; request += 1) await fill()
  let isFilled = false
  const filling = fill().finally(() => {
    isFilled = true
  })
  await sleep(sendLimits.requestAgeMaxMs + 100)
  expect(requests).toHaveLength(sendLimits.requestsInFlightMax)
  expect(isFilled).toBe(false)

  responses[1]?.accept()
  await filling
  expect(requests).toHaveLength(sendLimits.requestsInFlightMax + 1)
  for (const { accept } of responses) accept()
  await sender.end()
})

test('after a request failed nothing more is sent, and every entry is counted', async () => {
  const { requests, responses, tally, sender, fill } = setup()
  await fill()
  await fill()
  responses[0]?.fail(new Error('unauthorized'))
  await sleep(0)
  expect(sender.failed.aborted).toBe(true)
  await sender.add(outgoing(0))
  responses[1]?.accept()
  await expect(sender.end()).rejects.toThrow('unauthorized')
  expect(requests).toHaveLength(2)
  expect(tally).toMatchObject({ answered: 100, accepted: 100, unanswered: 101 })
})
