import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiSettings, readApiConfig } from '../../apps/api/src/config.ts'
import { querySettings, readQueryConfig } from '../../apps/query/src/config.ts'
import { readWorkerConfig, workerSettings } from '../../apps/worker/src/config.ts'
import {
  chart,
  componentOf,
  containerOf,
  environmentOf,
  examples,
  helm,
  type KubernetesObject,
  type Labels,
  Manifest,
  matches,
  render,
  valuesOf,
} from './rendered-chart.ts'

/** The newest version whose schemas kubectl-validate contains. The chart requires at least this one. */
const KUBERNETES = '1.30'
const EXAMPLE = 'minimal.yaml'
/** kubectl-validate has no schemas of them. */
const customKinds = ['ScaledObject', 'PodMonitor']

/** Values of the variables that come from Secrets. */
const secrets = {
  REDIS_URL: 'rediss://:secret@redis:6380',
  REDIS_SENTINEL_PASSWORD: 'secret',
  CLICKHOUSE_URL: 'https://clickhouse:8443',
  CLICKHOUSE_USERNAME: 'sluice',
  CLICKHOUSE_PASSWORD: 'secret',
}

interface NetworkPolicy extends KubernetesObject {
  readonly spec: {
    readonly policyTypes: readonly string[]
    readonly ingress?: readonly { readonly ports: readonly { readonly port: string }[] }[]
    readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[]
  }
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-chart-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** @throws Error with the invalid fields */
function validate(yaml: string): void {
  const file = join(folder, 'manifest.yaml')
  const documents = yaml
    .split(/^---$/m)
    .filter((text) => !customKinds.some((kind) => text.includes(`kind: ${kind}`)))
  writeFileSync(file, documents.join('---'))
  execFileSync('kubectl-validate', ['--version', KUBERNETES, file], {
    encoding: 'utf8',
    stdio: 'pipe',
    // No cluster of the user is queried.
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'none') },
  })
}

describe.each(examples)('with the values of %s, the chart', (example) => {
  let text: string
  let manifest: Manifest
  beforeAll(() => {
    text = render(example)
    manifest = new Manifest(text)
  })

  it('has no fault that Helm finds', () => {
    expect(helm(['lint', '--strict', '--quiet', chart, ...valuesOf(example)])).not.toMatch(/ERROR|WARNING/)
  })

  it('matches the schemas of Kubernetes', () => {
    expect(() => validate(text)).not.toThrow()
  })

  it('runs no container as root, with a capability or with a writable root file system', () => {
    expect(manifest.workloads.length).toBeGreaterThan(0)
    for (const { spec } of manifest.workloads) {
      const pod = spec.template.spec
      expect(pod.automountServiceAccountToken).toBe(false)
      expect(pod.enableServiceLinks).toBe(false)
      expect(pod.securityContext).toEqual({
        runAsNonRoot: true,
        runAsUser: 1000,
        runAsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(pod.containers).toHaveLength(1)
      for (const container of pod.containers)
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
    }
  })

  it('kills no process before its shutdown deadline', () => {
    const deadlineS = Number(manifest.settings['SHUTDOWN_DEADLINE_MS']) / 1_000
    for (const workload of manifest.processes) {
      const sleepS = containerOf(workload).lifecycle?.preStop.sleep.seconds ?? 0
      expect(workload.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
        sleepS + deadlineS + 5,
      )
      expect(sleepS > 0).toBe(componentOf(workload) !== 'worker')
    }
  })

  it('selects the pods of one workload with each selector', () => {
    interface Selecting extends KubernetesObject {
      readonly spec: {
        readonly selector?: { readonly matchLabels?: Labels } & Record<string, unknown>
        readonly podSelector?: { readonly matchLabels: Labels }
      }
    }
    const selecting = ['Deployment', 'Service', 'PodDisruptionBudget', 'NetworkPolicy'].flatMap((kind) =>
      manifest.ofKind<Selecting>(kind),
    )
    for (const object of selecting) {
      const { selector, podSelector } = object.spec
      const labels = podSelector?.matchLabels ?? selector?.matchLabels ?? (selector as Labels)
      const selected = manifest.workloads.filter((each) =>
        matches(labels, each.spec.template.metadata.labels),
      )
      expect(selected.map(componentOf)).toEqual([componentOf(object)])
    }
  })

  it('has a network policy for each workload, and only its servers in it', () => {
    const policies = manifest.ofKind<NetworkPolicy>('NetworkPolicy')
    expect(policies.map(componentOf).toSorted()).toEqual(manifest.workloads.map(componentOf).toSorted())
    for (const policy of policies) {
      const component = componentOf(policy)
      expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress'])
      const ingress = (policy.spec.ingress ?? []).flatMap(({ ports }) => ports.map(({ port }) => port))
      const ports = containerOf(manifest.workload(component)).ports ?? []
      expect(ingress).toEqual(ports.map(({ name }) => name))
      // Name servers, and one rule for each server. The command line reads through the query pods.
      expect(policy.spec.egress).toHaveLength({ api: 2, migration: 2, cli: 4 }[component] ?? 3)
    }
  })

  it('sets only documented settings, with values that the processes accept', () => {
    const settings = { ...apiSettings, ...querySettings, ...workerSettings }
    const documented = new Set([...Object.keys(settings), 'SLUICE_QUERY_URL'])
    const names = manifest.workloads.flatMap((each) => containerOf(each).env.map(({ name }) => name))
    expect([...names, ...Object.keys(manifest.settings)].filter((name) => !documented.has(name))).toEqual([])
    for (const workload of manifest.processes) {
      const environment = environmentOf(manifest, containerOf(workload), secrets)
      const readConfig = { api: readApiConfig, query: readQueryConfig }[componentOf(workload)]
      expect((readConfig ?? readWorkerConfig)(environment).OPS_PORT).toBe(9090)
    }
  })

  it('gives no secret to a ConfigMap or to the definition of a pod', () => {
    expect(manifest.ofKind('Secret')).toEqual([])
    expect(Object.keys(manifest.settings).filter((name) => /_URL$|PASSWORD|USERNAME/.test(name))).toEqual([])
    const values = manifest.workloads.flatMap((each) => containerOf(each).env)
    for (const { name, value = '' } of values) {
      expect(value).not.toContain('@')
      expect(/PASSWORD|USERNAME/.test(name) && value !== '').toBe(false)
    }
  })

  it('gives the query pods a user of their own in ClickHouse', () => {
    const passwords = manifest.workloads.flatMap((each) =>
      containerOf(each).env.flatMap(({ name, valueFrom }) =>
        name === 'CLICKHOUSE_PASSWORD' ? [[componentOf(each), JSON.stringify(valueFrom)] as const] : [],
      ),
    )
    const ofQuery = passwords.filter(([component]) => component === 'query')
    expect(ofQuery).toHaveLength(manifest.processes.some((each) => componentOf(each) === 'query') ? 1 : 0)
    const ofOthers = passwords.filter(([component]) => component !== 'query')
    for (const [, secret] of ofOthers) expect(ofQuery.map(([, own]) => own)).not.toContain(secret)
  })

  it('gives the API no access to ClickHouse', () => {
    const servers = manifest.processes.filter((each) => componentOf(each) === 'api')
    const names = servers.flatMap((each) => containerOf(each).env.map(({ name }) => name))
    expect(names.filter((name) => name.startsWith('CLICKHOUSE'))).toEqual([])
  })
})

function hooks(object: KubernetesObject): Labels {
  return object.metadata.annotations ?? {}
}

describe('the migration', () => {
  it('runs before each install and upgrade, after its network policy exists', () => {
    const manifest = new Manifest(render(EXAMPLE))
    const job = manifest.workload('migration')
    const policy = manifest.ofKind('NetworkPolicy').find((each) => componentOf(each) === 'migration')
    const [jobHooks, policyHooks] = [hooks(job), policy === undefined ? {} : hooks(policy)]
    for (const each of [jobHooks, policyHooks]) expect(each['helm.sh/hook']).toBe('pre-install,pre-upgrade')
    expect(Number(policyHooks['helm.sh/hook-weight'])).toBeLessThan(Number(jobHooks['helm.sh/hook-weight']))
    expect(containerOf(job).args).toEqual(['migrate'])
    expect(containerOf(job).image).toBe('registry.example.com/sluice-cli:0.2.0')
  })

  it('needs no object that the release creates later', () => {
    const job = new Manifest(render('redis-cluster-tls.yaml')).workload('migration')
    expect(containerOf(job).envFrom).toBeUndefined()
    expect(JSON.stringify(job.spec)).not.toMatch(/logs-sluice-settings|serviceAccountName/)
  })
})

it('replaces the pods when a setting changes', () => {
  const checksums = [10, 20].map((waitMs) => {
    const manifest = new Manifest(render(EXAMPLE, [`settings.BATCH_WAIT_MS=${waitMs}`]))
    return JSON.stringify(manifest.workload('worker').spec.template.metadata)
  })
  expect(checksums[0]).not.toBe(checksums[1])
})

it.each([
  ['a name that does not exist', 'api.replica=3'],
  ['a setting that does not exist', 'settings.LOG_LEVLE=info'],
  ['a setting that the chart determines', 'settings.PORT=8080'],
  ['a password among the settings', 'settings.CLICKHOUSE_PASSWORD=secret'],
  ['a setting with a value of another type', 'settings.BATCH_WAIT_MS=soon'],
  ['a setting out of its range', 'settings.SHUTDOWN_DEADLINE_MS=50'],
  ['a URL with a password', 'redis.url=redis://:secret@redis:6379'],
  ['an unknown kind of autoscaling', 'worker.autoscaling.kind=vpa'],
  ['an unknown resource', 'api.resources.limits.memroy=1Gi'],
  ['an unknown peer', 'networkPolicy.redisTo[0].podSelektor=x'],
])('rejects %s', (_what, set) => {
  expect(() => render(EXAMPLE, [set])).toThrow(/values don't meet the specifications of the schema/)
})

it.each([
  ['redis', 'redis.existingSecret='],
  ['clickhouse', 'clickhouse.existingSecret='],
])('requires the address of %s', (server, set) => {
  expect(() => render(EXAMPLE, [set])).toThrow(`set ${server}.url, or ${server}.existingSecret with the URL`)
})
