#!/bin/sh
# Makes a minimal Debian with runtime-packages.txt the file system of the image. Runs inside it, as root: docker/Dockerfile
# and docker/build.sh call it, so both images have the same user, directories and rights.
set -eu

# The number is fixed: volumes keep it, and Kubernetes (runAsNonRoot) wants a number to see that it is not root.
groupadd --gid 10001 fusion
useradd --uid 10001 --gid fusion --no-log-init --no-create-home --home-dir /var/lib/fusiond --shell /usr/sbin/nologin fusion
install -d -o fusion -g fusion -m 0700 /var/lib/fusiond

# Nothing in the image has to become another user.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

# What installing left, with the times in it, which differ between two builds.
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/*
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid- /etc/machine-id
# Days since 1970 of the last change of the password, which the user does not have.
sed -i 's/^\(fusion:[^:]*\):[0-9]*:/\1::/' /etc/shadow
