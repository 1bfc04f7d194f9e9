import { fileURLToPath } from 'node:url'
import { GenericContainer } from 'testcontainers'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The targets of the Dockerfile. */
export type Target = 'api' | 'worker' | 'cli'

/** Builds an image and leaves it for the next time, when all but what has changed comes from Docker's cache. */
export async function buildImage(target: Target): Promise<void> {
  await GenericContainer.fromDockerfile(root)
    .withTarget(target)
    .build(imageName(target), { deleteOnExit: false })
}

/** A container of such an image, as bounded as docker-compose.yml has it: nothing can be written, and nothing gained. */
export class SluiceContainer extends GenericContainer {
  constructor(target: Target) {
    super(imageName(target))
    this.hostConfig.ReadonlyRootfs = true
    this.withDroppedCapabilities('ALL').withSecurityOpt('no-new-privileges:true')
  }
}

function imageName(target: Target): string {
  return `sluice-${target}:test`
}
