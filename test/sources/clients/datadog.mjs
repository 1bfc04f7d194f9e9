import { client, v2 } from '@datadog/datadog-api-client'
import { ServerConfiguration } from '@datadog/datadog-api-client/dist/packages/datadog-api-client-common/index.js'
import { setTimeout } from 'node:timers/promises'
import { readBatches } from './lines.mjs'

const configuration = client.createConfiguration({
  baseServer: new ServerConfiguration('https://logs.example.com', {}),
  authMethods: { apiKeyAuth: 'slk_…' },
  enableRetry: true,
})
const logs = new v2.LogsApi(configuration)

async function send(body) {
  for (;;) {
    try {
      return await logs.submitLog({ body })
    } catch (error) {
      // An error without a code is a lost connection, which the client does not retry.
      if (error.code !== undefined && typeof error.code === 'number') throw error
      await setTimeout(1_000)
    }
  }
}

for await (const records of readBatches(10))
  await send(records.map(({ message }) => ({ message, service: 'shop', ddtags: 'env:prod', hostname: 'h' })))
