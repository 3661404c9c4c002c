#!/usr/bin/env bash
# Builds the image of docker/Dockerfile from Debian packages: no registry, no container engine, no daemon. On Debian 12; root
# or sudo for packages only (mmdebstrap uses user namespaces where it is not root). The same commit and the same packages
# give the same image, byte for byte.
#
#   docker/build.sh                         builds the programs in build/image, without tests, and the image beside them
#   docker/build.sh --build build/release   takes the programs of this build
#   docker/build.sh --out FILE              where the archive goes; default: build/image/fusiond-VERSION.tar
#   docker/build.sh --name NAME:TAG         default: fusiond:VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

version=$(sed -n 's/^project(fusiond VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
build=
out=build/image/fusiond-$version.tar
name=fusiond:$version
while [[ $# -gt 0 ]]; do
  case "$1" in
    --build) build=${2:?} ;;
    --out) out=${2:?} ;;
    --name) name=${2:?} ;;
    *)
      echo "usage: $0 [--build DIR] [--out FILE] [--name NAME:TAG]" >&2
      exit 2
      ;;
  esac
  shift 2
done
# shellcheck source=/dev/null
system=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-$(dpkg --print-architecture 2>/dev/null || true)
[[ "$system" == bookworm-amd64 ]] || {
  echo "build.sh: the programs link the libraries of this system, $system; bookworm-amd64 wanted. Elsewhere: docker/Dockerfile" >&2
  exit 1
}

step() { printf '\n== %s\n' "$*"; }

if [[ -z "$build" ]]; then
  build=build/image
  step "programs (cmake --preset release -B $build)"
  deploy/install_deps.sh
  cmake --preset release -B "$build" -DFUSION_TESTS=OFF >/dev/null
  cmake --build "$build" | tail -n 1
fi

if ! command -v mmdebstrap >/dev/null; then
  step "mmdebstrap"
  as_root=()
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null
fi

mkdir -p "$(dirname "$out")"
out=$(realpath "$out")
work=$(mktemp -d "$(dirname "$out")/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 0755 "$work"
revision=$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
created=$(git log -1 --format=%ct 2>/dev/null || date +%s)
# The latest time in the layer of the packages, which mmdebstrap reads: other commits leave this layer as it is.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct -- docker/build.sh docker/prepare_root.sh docker/runtime-packages.txt 2>/dev/null || true)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$created}

step "root: Debian 12 with docker/runtime-packages.txt"
# Mirrors, proxies and checks of times as this machine's apt has them; without mirrors: Debian's own.
mapfile -t mirrors < <(apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' \
  'Origin: Debian' 2>/dev/null | sort -u | grep -E ' bookworm(-updates|-security)? main$' || true)
apt-config dump --no-empty --format '%F "%v";%n' Acquire |
  grep -E '^Acquire::(Check-|https?::(Proxy|CA|Verify))' >"$work/apt.conf" || true
packages=$(sed 's/#.*//' docker/runtime-packages.txt | xargs | tr ' ' ',')
cat >"$work/sources.list" <<'SOURCES'
deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://deb.debian.org/debian-security bookworm-security main
SOURCES
chmod 0644 "$work"/*
mmdebstrap --variant=minbase --include="$packages" --aptopt="$work/apt.conf" --skip=output/dev \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --customize-hook="chroot \"\$1\" sh -s <'$PWD/docker/prepare_root.sh'" \
  --customize-hook='rm "$1/etc/apt/apt.conf.d/99mmdebstrap"' \
  --customize-hook="cp '$work/sources.list' \"\$1/etc/apt/sources.list\"" \
  bookworm "$work/root.tar" "${mirrors[@]}" 2>"$work/log" || {
  tail -n 20 "$work/log" >&2
  exit 1
}

step "programs of $build"
DESTDIR=$work/installed cmake --install "$build" --component Unspecified --prefix /usr --strip >"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  exit 1
}
mkdir -p "$work/layer/usr/bin" "$work/layer/etc"
install -m 0755 "$work"/installed/usr/bin/* "$work/layer/usr/bin"
install -m 0644 docker/fusiond.conf "$work/layer/etc/fusiond.conf"
ls "$work/layer/usr/bin"
tar --sort=name --mtime="@$created" --owner=0 --group=0 --numeric-owner -C "$work/layer" -cf "$work/programs.tar" etc usr

step "image $name"
docker/oci_image.py --config docker/image.json --name "$name" --created "$created" \
  --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$revision" \
  --out "$out" "$work/root.tar" "$work/programs.tar"
du -h "$out"
printf '\ndone: podman load -i %s, or docker load -i %s\n' "$out" "$out"
