#!/usr/bin/env bash
# Debian packages that a cluster with a kubelet takes. Prints those that are missing, each with the command that misses it;
# with --install it installs them, which CI does and a person decides.
set -euo pipefail
declare -A needed=(
  [containerd]=containerd [runc]=runc [/usr/lib/cni/bridge]=containernetworking-plugins [nft]=nftables [buildah]=buildah
  [debootstrap]=debootstrap [ip]=iproute2 [gcc]=gcc [/usr/include/stdlib.h]=libc6-dev [openssl]=openssl [nsenter]=util-linux [curl]=curl
)
PATH=$PATH:/usr/sbin:/sbin
missing=()
for command in "${!needed[@]}"; do
  command -v "$command" >/dev/null || [ -e "$command" ] || missing+=("${needed[$command]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "${1:-}" = --install ]; then
  echo "packages.sh: installing ${missing[*]}" >&2
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
else
  printf '%s\n' "${missing[*]}"
fi
