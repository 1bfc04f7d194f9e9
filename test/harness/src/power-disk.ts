import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { eventually } from './waiting.ts'

const run = promisify(execFile)

/** FS_IOC_SHUTDOWN with NOLOGFLUSH: from now on the file system reads and writes nothing, and forgets what is not on the disk. */
const CUT_POWER = String.raw`my $flags = pack("L", 2); open(my $folder, "<", $ARGV[0]) or die $!; ioctl($folder, 0x8004587d, $flags) or die $!`

/**
 * A separate disk for one folder, whose power can be cut: what the kernel has not written to it is lost. Needs root, a loop device, e2fsprogs and
 * perl.
 *
 * Mounted ⇄ without power.
 */
export class PowerDisk {
  readonly #image: string
  readonly #folder: string

  private constructor(image: string, folder: string) {
    this.#image = image
    this.#folder = folder
  }

  /** Makes an empty disk as a file, and mounts it on a folder, which is made if it is missing. */
  static async mount(image: string, folder: string, size: string): Promise<PowerDisk> {
    await run('truncate', ['-s', size, image])
    await run('mkfs.ext4', ['-q', image])
    mkdirSync(folder, { recursive: true })
    const disk = new PowerDisk(image, folder)
    await disk.#mount()
    return disk
  }

  async sync(): Promise<void> {
    await run('sync', ['--file-system', this.#folder])
  }

  /** From now on, reads and writes fail. */
  async cutPower(): Promise<void> {
    await run('perl', ['-e', CUT_POWER, this.#folder])
  }

  /** To be called when the processes that use the disk are dead. */
  async restorePower(): Promise<void> {
    await eventually(() => run('umount', [this.#folder]))
    await this.#mount()
  }

  async destroy(): Promise<void> {
    await run('umount', ['--lazy', this.#folder])
    await rm(this.#image)
  }

  async #mount(): Promise<void> {
    await run('mount', ['-o', 'loop', this.#image, this.#folder])
  }
}
