import { SettingsError } from '@sluice/runtime'
import { expect, it } from 'vitest'
import { readApiConfig } from '../../src/config.ts'

it('traces are off by default, and all requests are traced if they are on', () => {
  expect(readApiConfig({})).toMatchObject({ traceSampleRatio: 1 })
  expect(readApiConfig({}).OTEL_EXPORTER_OTLP_TRACES_ENDPOINT).toBeUndefined()
})

it('the general endpoint of OpenTelemetry does not switch traces on', () => {
  const config = readApiConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' })
  expect(config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT).toBeUndefined()
})

it.each([
  ['0', 0],
  ['0.25', 0.25],
  ['1', 1],
  ['1.0', 1],
])('a part of %s is %d', (text, ratio) => {
  expect(readApiConfig({ OTEL_TRACES_SAMPLER_ARG: text }).traceSampleRatio).toBe(ratio)
})

it.each(['1.1', '-0.5', '2', 'all', '.5', '10%'])('a part of %s is rejected', (text) => {
  expect(() => readApiConfig({ OTEL_TRACES_SAMPLER_ARG: text })).toThrow(SettingsError)
})

it.each(['collector:4318', 'grpc://collector:4317', 'http://', 'http:///v1/traces'])(
  'the endpoint %s is rejected',
  (url) => {
    expect(() => readApiConfig({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url })).toThrow(SettingsError)
  },
)
