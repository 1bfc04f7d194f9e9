#!/usr/bin/env bash
# Unpacks packages of another release of Debian, with everything that they depend on. Installs nothing, needs no root.
#
#   tools/unpack-packages.sh FOLDER RELEASE PACKAGE…
#
# They come from the mirror that DEBIAN_MIRROR names, by default that of this system.
# The files are in FOLDER/root. A program from there needs its own loader and libraries, see tools/newer-redis.sh.
set -euo pipefail
folder=$(realpath -m "$1") release=$2
shift 2
configured=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1 || true)
mirror=${DEBIAN_MIRROR:-${configured% }}
if [ -z "$mirror" ]; then
  echo 'apt has no mirror of Debian in its configuration: set DEBIAN_MIRROR to the URL of one' >&2
  exit 1
fi
mkdir -p "$folder"/{root,lists/partial,archives/partial}
: >"$folder/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$folder/sources.list"

apt=(apt-get -qq -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$folder/lists"
  -o Dir::State::Status="$folder/status" -o Dir::Cache::Archives="$folder/archives" -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache=
  -o APT::Default-Release= -o APT::Sandbox::User= -o Debug::NoLocking=true)
"${apt[@]}" update
"${apt[@]}" install --download-only -y --no-install-recommends "$@"
for package in "$folder"/archives/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
