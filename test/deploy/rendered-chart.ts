import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

/** The parts of Kubernetes' objects that the tests read. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly labels: Labels
    readonly annotations?: Readonly<Record<string, string>>
  }
}

export type Labels = Readonly<Record<string, string>>

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } }
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly args?: readonly string[]
  readonly env: readonly Variable[]
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
  readonly securityContext: unknown
}

export interface Workload extends KubernetesObject {
  readonly kind: 'Deployment' | 'Job'
  readonly spec: {
    readonly selector?: { readonly matchLabels: Labels }
    readonly template: {
      readonly metadata: { readonly labels: Labels }
      readonly spec: {
        readonly automountServiceAccountToken: boolean
        readonly enableServiceLinks: boolean
        readonly securityContext: unknown
        readonly terminationGracePeriodSeconds?: number
        readonly containers: readonly [Container]
      }
    }
  }
}

export const chart = fileURLToPath(new URL('../../deploy/helm', import.meta.url))
export const examples = readdirSync(`${chart}/examples`).filter((file) => file.endsWith('.yaml'))

/** @throws Error with Helm's message if the chart or the values are invalid */
export function helm(args: readonly string[]): string {
  return execFileSync('helm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** The arguments that select the values of an example, and change some of them. */
export function valuesOf(example: string, sets: readonly string[] = []): string[] {
  return ['--values', `${chart}/examples/${example}`, ...sets.flatMap((set) => ['--set', set])]
}

/** The YAML that Helm sends to Kubernetes for a release `logs` in the namespace `logging`. */
export function render(example: string, sets?: readonly string[]): string {
  return helm(['template', 'logs', chart, '--namespace', 'logging', ...valuesOf(example, sets)])
}

export class Manifest {
  readonly objects: readonly KubernetesObject[]

  constructor(text: string) {
    this.objects = parseAllDocuments(text)
      .map((document) => document.toJS() as KubernetesObject | null)
      .filter((object) => object !== null)
  }

  /** The objects of a kind. The caller knows the type that the kind has. */
  ofKind<Type extends KubernetesObject>(kind: string): Type[] {
    return this.objects.filter((object) => object.kind === kind) as Type[]
  }

  get workloads(): Workload[] {
    return [...this.ofKind<Workload>('Deployment'), ...this.ofKind<Workload>('Job')]
  }

  /** The workloads of API processes, query processes and workers. */
  get processes(): Workload[] {
    return this.workloads.filter((each) => ['api', 'query', 'worker'].includes(componentOf(each)))
  }

  /** @throws Error if the chart has no workload for the component */
  workload(component: string): Workload {
    const found = this.workloads.find((each) => componentOf(each) === component)
    if (found === undefined) throw new Error(`no workload for ${component}`)
    return found
  }

  /** The data of the ConfigMap with the settings. */
  get settings(): Readonly<Record<string, string>> {
    const [map] = this.ofKind<KubernetesObject & { readonly data: Record<string, string> }>('ConfigMap')
    return map?.data ?? {}
  }
}

export function componentOf(object: KubernetesObject): string {
  return object.metadata.labels['app.kubernetes.io/component'] ?? ''
}

export function containerOf(workload: Workload): Container {
  return workload.spec.template.spec.containers[0]
}

/**
 * The environment of a process in a pod.
 *
 * @param secrets the values of the variables that come from Secrets
 */
export function environmentOf(
  manifest: Manifest,
  container: Container,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  const own = container.env.map(({ name, value }) => [name, value ?? secrets[name] ?? ''])
  return { ...(container.envFrom === undefined ? {} : manifest.settings), ...Object.fromEntries(own) }
}

export function matches(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}
