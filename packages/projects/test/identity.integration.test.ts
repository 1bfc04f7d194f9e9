import { afterEach, beforeEach, expect, it } from 'vitest'
import { RegistryFixture } from './registry-fixture.ts'

let fixture: RegistryFixture

beforeEach(async () => {
  fixture = await RegistryFixture.open()
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
