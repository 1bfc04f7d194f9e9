const { client, v2 } = require('@datadog/datadog-api-client')
const { ServerConfiguration } = require('@datadog/datadog-api-client/dist/packages/datadog-api-client-common')

const { SLUICE_API_URL: url, SLUICE_API_KEY: key, SERVICE: service } = process.env
const configuration = client.createConfiguration({
  baseServer: new ServerConfiguration(url, {}),
  authMethods: { apiKeyAuth: key },
})
const log = {
  message: 'from the client of Datadog',
  service,
  ddsource: 'nodejs',
  ddtags: 'env:prod',
  hostname: 'h',
}
new v2.LogsApi(configuration).submitLog({ body: [log], contentEncoding: 'gzip' }).catch((error) => {
  process.stdout.write(`${error}\n`)
  process.exitCode = 1
})
