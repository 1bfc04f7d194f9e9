#!/usr/bin/env bash
# Compiles an OpenTelemetry Collector into FOLDER/otelcol-sluice, from the Go module proxy. Takes two cores about three minutes. Does
# nothing if the folder has it.
#
#   tools/collector.sh FOLDER
#
# FOLDER can then be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1")
if [ -x "$folder/otelcol-sluice" ]; then exit 0; fi
command -v go >/dev/null || { echo 'there is no Go to compile the Collector' >&2; exit 1; }
mkdir -p "$folder"
build=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$build"' EXIT
cp "$(dirname "$0")/collector-build.yaml" "$build/build.yaml"
cd "$build"
export CGO_ENABLED=0
GOBIN="$build" go install go.opentelemetry.io/collector/cmd/builder@v0.165.0
sed -i "s|^dist:|dist:\n  output_path: $build/sources|" build.yaml
./builder --config build.yaml
mv sources/otelcol-sluice "$folder/otelcol-sluice"
