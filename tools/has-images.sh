#!/usr/bin/env bash
# Succeeds if a Docker engine has the images of the tests with containers. Pulls no image. The last line of the output says what is missing.
set -euo pipefail
command -v docker >/dev/null || { echo 'there is no Docker client'; exit 1; }
timeout 10 docker version >/dev/null 2>&1 || { echo 'the Docker engine does not answer'; exit 1; }
for image in node:26-bookworm-slim redis:8-bookworm clickhouse/clickhouse-server:26.8; do
  docker image inspect "$image" >/dev/null 2>&1 || { echo "the Docker engine has no image $image"; exit 1; }
done
