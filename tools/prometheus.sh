#!/usr/bin/env bash
# Unpacks `prometheus` and `promtool` of this Debian or Ubuntu into a folder. Installs nothing, needs no root. Does nothing if the folder
# has both.
#
#   tools/prometheus.sh FOLDER
#
# FOLDER/usr/bin can then be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1")
if [ -x "$folder/usr/bin/prometheus" ] && [ -x "$folder/usr/bin/promtool" ]; then exit 0; fi
mkdir -p "$folder"/{lists/partial,archives/partial}

# The lists of the system may be old or, in a container, missing. So this reads its own.
apt=(apt-get -qq -o Dir::State::Lists="$folder/lists" -o Dir::Cache::Archives="$folder/archives" -o Dir::Cache::PkgCache=
  -o Dir::Cache::SrcPkgCache= -o APT::Sandbox::User= -o Debug::NoLocking=true)
"${apt[@]}" update
cd "$folder/archives"
"${apt[@]}" download prometheus
# Unpacked elsewhere first, so that a folder with the programs is complete.
mkdir -p "$folder/unpacked"
dpkg-deb --extract "$folder"/archives/prometheus_*.deb "$folder/unpacked"
rm -rf "$folder/usr" "$folder/lists" "$folder/archives"
mv "$folder/unpacked/usr" "$folder/usr"
rm -rf "$folder/unpacked"
"$folder/usr/bin/prometheus" --version
