import { expect, it, onTestFinished } from 'vitest'
import { Registry } from '../src/registry.ts'
import { RegistryFixture } from './registry-fixture.ts'

it('a process that has seen the registry knows without a worker that projects created since then are others', async () => {
  const fixture = await RegistryFixture.open()
  onTestFinished(() => fixture.close())
  const { registry, redis, prefix } = fixture
  const { identity, projects } = registry
  expect(await identity.read()).toBe('empty')
  await projects.create('before')
  expect(await identity.reconcile(undefined)).toBeDefined()
  expect(await identity.read()).toBe('known')

  await redis.del(await fixture.redisKeys())
  expect(await identity.read()).toBe('lost')
  await projects.create('since')
  expect(await identity.read()).toBe('foreign')
  expect(await new Registry(redis, prefix).identity.read()).toBe('known')
  await identity.accept()
  expect(await identity.read()).toBe('known')
})
