#!/usr/bin/env bash
# Unpacks rsyslog with omhttp (Debian 14, the first with that module) and syslog-ng with http() (Debian 12, the oldest that the example
# supports) into a folder, as programs that also run on other releases, and journalctl with what can write a journal. Installs nothing,
# needs no root. Does nothing if the folder has them.
#
#   tools/syslog-programs.sh FOLDER [RELEASE-OF-SYSLOG-NG]
#
# Puts the programs `rsyslogd`, `syslog-ng`, `journalctl` and `systemd-journal-remote` into FOLDER/bin, which can be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1") release=${2:-bookworm}
if [ -e "$folder/complete" ]; then exit 0; fi
mkdir -p "$folder/bin"

# wrap PROGRAM ROOT MODULES-OPTION MODULES: a program of an unpacked root with its own loader and libraries.
wrap() {
  local root="$folder/$2/root"
  local libraries; libraries=$(find "$root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu' | paste -sd:)
  cat >"$folder/bin/$1" <<WRAPPER
#!/bin/sh
exec "$(find "$root" -name 'ld-linux-*.so.*' -path '*/lib/*-linux-gnu/*' -print -quit)" --argv0 $1 --library-path "$libraries:$root/usr/lib/syslog-ng:$folder/$2/shared" "$(find "$root" -type f -perm -u+x -regex ".*/\(s?bin\|systemd\)/$1" -print -quit)" $3$4 "\$@"
WRAPPER
  chmod +x "$folder/bin/$1"
}

unpack=$(dirname "$0")/unpack-packages.sh
# Each in a folder of its own: the packages conflict.
"$unpack" "$folder/rsyslogd" forky rsyslog rsyslog-http
wrap rsyslogd rsyslogd '-M ' "$(echo "$folder"/rsyslogd/root/usr/lib/*-linux-gnu/rsyslog)"
"$unpack" "$folder/syslog-ng" "$release" syslog-ng-core syslog-ng-mod-http
wrap syslog-ng syslog-ng --module-path= "$(echo "$folder"/syslog-ng/root/usr/lib/syslog-ng/[0-9]*)"
"$unpack" "$folder/systemd" bookworm systemd systemd-journal-remote
mkdir -p "$folder/systemd/shared"
find "$folder/systemd/root" -name 'libsystemd-shared-*.so' -exec ln -sf {} "$folder/systemd/shared/" \;
wrap journalctl systemd '' ''
wrap systemd-journal-remote systemd '' ''
"$folder/bin/rsyslogd" -v | grep rsyslogd
"$folder/bin/syslog-ng" -V | grep '^syslog-ng'
"$folder/bin/journalctl" --version | head -1
touch "$folder/complete"
