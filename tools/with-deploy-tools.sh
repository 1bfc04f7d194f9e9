#!/usr/bin/env bash
# Runs a command that needs Helm, kubectl-validate and the schemas of custom resources.
#
#   tools/with-deploy-tools.sh COMMAND…
#
# What is not on the PATH is compiled from the Go module proxy, once, into SLUICE_TOOLS_DIR (by default sluice-tools in the user's
# cache), which takes two cores about four minutes. SLUICE_TEST_CRDS gets the folders of the schemas, separated by colons; it stays empty
# where Go cannot download them.
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

# The modules have the custom resource definitions of KEDA and of the Prometheus operator as files. Nothing is compiled.
crds=''
if command -v go >/dev/null; then
  for source in github.com/kedacore/keda/v2@v2.21.0:config/crd/bases \
    github.com/prometheus-operator/prometheus-operator@v0.85.0:example/prometheus-operator-crd; do
    module=$(go mod download -json "${source%%:*}" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') && [ -n "$module" ] &&
      crds="$crds${crds:+:}$module/${source#*:}" || echo "The custom resources of ${source%%:*} are not validated." >&2
  done
else
  echo 'The custom resources of KEDA and the Prometheus operator are not validated: there is no Go to download their schemas.' >&2
fi
export PATH SLUICE_TEST_CRDS="$crds"
exec "$@"
