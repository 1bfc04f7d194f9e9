#!/usr/bin/env bash
# Unpacks rsyslog with omhttp (Debian 14, the first with that module) and syslog-ng with http() (Debian 12, the oldest that the example
# supports) into a folder, as programs that also run on other releases. Installs nothing, needs no root. Does nothing if the folder has
# both.
#
#   tools/syslog-programs.sh FOLDER [RELEASE-OF-SYSLOG-NG]
#
# Puts the programs `rsyslogd` and `syslog-ng` into FOLDER/bin, which can be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1") release=${2:-bookworm}
if [ -x "$folder/bin/rsyslogd" ] && [ -x "$folder/bin/syslog-ng" ]; then exit 0; fi
mkdir -p "$folder/bin"

# wrap PROGRAM MODULES-OPTION MODULES: a program of FOLDER/PROGRAM/root with its own loader and libraries.
wrap() {
  local root="$folder/$1/root"
  local libraries; libraries=$(find "$root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu' | paste -sd:)
  cat >"$folder/bin/$1" <<WRAPPER
#!/bin/sh
exec "$(find "$root" -name 'ld-linux-*.so.*' -path '*/lib/*-linux-gnu/*' -print -quit)" --argv0 $1 --library-path "$libraries:$root/usr/lib/syslog-ng" "$root/usr/sbin/$1" $2$3 "\$@"
WRAPPER
  chmod +x "$folder/bin/$1"
}

unpack=$(dirname "$0")/unpack-packages.sh
# Each in a folder of its own: the packages conflict.
"$unpack" "$folder/rsyslogd" forky rsyslog rsyslog-http
wrap rsyslogd '-M ' "$(echo "$folder"/rsyslogd/root/usr/lib/*-linux-gnu/rsyslog)"
"$unpack" "$folder/syslog-ng" "$release" syslog-ng-core syslog-ng-mod-http
wrap syslog-ng --module-path= "$(echo "$folder"/syslog-ng/root/usr/lib/syslog-ng/[0-9]*)"
"$folder/bin/rsyslogd" -v | grep rsyslogd
"$folder/bin/syslog-ng" -V | grep '^syslog-ng'
