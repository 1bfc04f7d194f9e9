import { afterEach, beforeEach, expect, it } from 'vitest'
import { Registry } from '../src/registry.ts'
import { RegistryFixture } from './registry-fixture.ts'

let fixture: RegistryFixture

beforeEach(() => {
  fixture = new RegistryFixture()
})
afterEach(() => fixture.close())

it('projects that are not those of ClickHouse are lost or foreign, until an operator accepts them', async () => {
  const { identity, projects } = fixture.registry
  expect(await identity.read()).toBe('empty')
  expect(await identity.reconcile('x')).toBeUndefined()
  expect(await identity.read()).toBe('lost')
  await projects.create('demo')
  expect(await identity.read()).toBe('foreign')
  await identity.accept()
  expect(await identity.read()).toBe('known')
  await identity.reconcile('x')
  expect(await identity.read()).toBe('known')
  await identity.reconcile('y')
  expect(await identity.read()).toBe('foreign')
})

it('a process that has seen the registry knows without a worker that projects created since then are others', async () => {
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
