#!/usr/bin/env bash
# Runs a command that needs Helm and kubectl-validate.
#
#   tools/with-deploy-tools.sh COMMAND…
#
# What is not on the PATH is compiled from the Go module proxy, once, into SLUICE_TOOLS_DIR (by default sluice-tools in the user's
# cache), which takes two cores about four minutes.
set -euo pipefail
cache=${SLUICE_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools}

# provide PROGRAM MODULE VERSION PACKAGE
provide() {
  command -v "$1" >/dev/null && return
  local folder="$cache/$1-$3"
  if [ ! -x "$folder/$1" ]; then
    command -v go >/dev/null || { echo "$1 is not on the PATH, and there is no Go to compile it" >&2; exit 1; }
    echo "Compiling $1 $3 into $folder …" >&2
    mkdir -p "$folder"
    local new; new=$(mktemp -d "$folder/new.XXXXXX")
    GOBIN="$new" go install "$2$4@$3" >&2 || { rm -rf "$new"; echo "$1 $3 cannot be compiled" >&2; exit 1; }
    mv "$new/$1" "$folder/$1"
    rmdir "$new"
  fi
  PATH="$folder:$PATH"
}
provide helm helm.sh/helm/v4 v4.3.1 /cmd/helm
provide kubectl-validate sigs.k8s.io/kubectl-validate v0.0.4 ''

export PATH
exec "$@"
