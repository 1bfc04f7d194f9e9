#!/usr/bin/env bash
# Succeeds if the power cut tests can run, which mount a disk image. The last line of the output says what is missing.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo 'not root'; exit 1; }
command -v mkfs.ext4 >/dev/null || { echo 'no mkfs.ext4'; exit 1; }
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
mkdir "$probe/disk"
truncate -s 8M "$probe/image"
mkfs.ext4 -q "$probe/image"
mount -o loop "$probe/image" "$probe/disk" 2>/dev/null || { echo 'no loop devices'; exit 1; }
umount "$probe/disk"
