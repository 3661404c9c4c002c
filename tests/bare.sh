#!/usr/bin/env bash
# Runs the README's two commands in a fresh, minimal Debian 12 (a debootstrap chroot), where nothing but what they
# install themselves is there, and prints what each took. Needs root, about 4 GB and 20 to 40 minutes; not part of CI.
#
#   tests/bare.sh [DIRECTORY]      chroot to create; default: a temporary one, removed afterwards
#
# Packages come from the mirror that this machine's apt uses.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $(id -u) -eq 0 ]] || { echo "bare.sh: needs root for debootstrap and chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || {
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
}

root=${1:-$(mktemp -d /var/tmp/bare.XXXXXX)}
[[ ! -e "$root/bin" ]] || { echo "bare.sh: $root is not empty" >&2; exit 2; }
mounted=()
cleanup() {
  for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount -R -l "${mounted[i]}" || true; done
  # Never removes what is still mounted below.
  if [[ -z "${keep:-}" ]] && ! grep -q " $root" /proc/mounts; then rm -rf --one-file-system "$root"; fi
}
keep=${1:+yes}
trap cleanup EXIT
trap 'exit 130' INT TERM

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
echo "== debootstrap bookworm from $mirror"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
  tail -n 5 "$root.log" >&2
  exit 1
}
rm -f "$root.log"

# The network as this machine has it: mirror, proxy, certificates, names.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -aL /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d "$root/etc/apt/" 2>/dev/null || true
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
for what in proc dev; do
  mount --rbind "/$what" "$root/$what"
  mount --make-rslave "$root/$what"
  mounted+=("$root/$what")
done

mkdir -p "$root/src"
git archive HEAD | tar -x -C "$root/src"
env_file=$(env | grep -iE '^(https?_proxy|no_proxy)=' || true)

in_chroot() {
  local start=$SECONDS
  # shellcheck disable=SC2086
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 $env_file chroot "$root" bash -c "cd /src && $1"
  echo "== $1 took $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s"
}
in_chroot deploy/quickstart.sh
rm -rf "$root/src/build"  # the second command starts bare as well, packages apart
in_chroot tests/run.sh
