#!/usr/bin/env bash
# Called by `up.sh --kubelet`, inside the network namespace: containerd, kubelet, kube-proxy and CoreDNS. Images come from the files
# that images.sh lists; nothing reaches a registry.
set -euo pipefail
. "$(dirname "$0")/env.sh"
pki=$RUN/pki log=$RUN/log pid=$RUN/pid containerd=$RUN/containerd
mkdir -p "$containerd/imported" "$RUN/kubelet" "$RUN/cni"
start() { # name command arguments...
  local name=$1
  shift
  setsid "$@" >"$log/$name.log" 2>&1 </dev/null &
  echo $! >"$pid/$name"
}
# restrict_oom_score_adj: root in a small virtual machine or a container may lack CAP_SYS_RESOURCE, and every pod would die at its
# start. netns_mounts_under_state_dir: so that down.sh finds all mounts below $RUN.
cat >"$containerd/config.toml" <<C
version = 2
root = "$containerd/root"
state = "$containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "$SOCKET"
[ttrpc]
  address = "$containerd/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  stream_server_address = "127.0.0.1"
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$RUN/cni"
C
cat >"$RUN/cni/10-bridge.conflist" <<C
{"cniVersion": "0.4.0", "name": "kube", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
  "hairpinMode": true, "ipam": {"type": "host-local", "dataDir": "$RUN/cni-addresses", "ranges": [[{"subnet": "$NODE_PODS"}]],
  "routes": [{"dst": "0.0.0.0/0"}]}}]}
C
start containerd containerd -c "$containerd/config.toml"
for _ in $(seq 100); do ctr -a "$SOCKET" version >/dev/null 2>&1 && break; sleep 0.1; done
# The store outlives down.sh: only what is new is imported, and only what is listed stays.
while read -r archive; do
  mark=$containerd/imported/$(basename "$archive")
  [ -e "$mark" ] || { ctr -a "$SOCKET" -n k8s.io images import "$archive" >/dev/null && touch "$mark"; }
done <"$IMG/list"
for mark in "$containerd"/imported/*; do
  grep -q "/$(basename "$mark")\$" "$IMG/list" || rm -f "$mark"
done
cat >"$RUN/kubelet/config.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_ADDRESS
port: 10250
healthzBindAddress: 127.0.0.1
tlsCertFile: $pki/kubelet-server.crt
tlsPrivateKeyFile: $pki/kubelet-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$SOCKET
resolvConf: ""
clusterDNS: [$NODE_DNS]
clusterDomain: cluster.local
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
enforceNodeAllocatable: []
shutdownGracePeriod: 0s
nodeStatusUpdateFrequency: 5s
volumeStatsAggPeriod: 5s # how late a volume that is overfilled has its pod evicted, and 10 s
syncFrequency: 2s # how late a changed ConfigMap or Secret is in a pod
podLogsDir: $RUN/kubelet/pod-logs
C
start kubelet "$BIN/kubeall" kubelet --config="$RUN/kubelet/config.yaml" --kubeconfig="$pki/kubelet.kubeconfig" \
  --root-dir="$RUN/kubelet/root" --hostname-override="$NODE" --node-ip="$NODE_ADDRESS"
# conntrack all zero: it leaves the machine's settings alone.
cat >"$RUN/kube-proxy.yaml" <<C
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $pki/kube-proxy.kubeconfig}
hostnameOverride: $NODE
bindAddress: $NODE_ADDRESS
clusterCIDR: $NODE_PODS
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0}
nftables: {minSyncPeriod: 100ms}
C
start kube-proxy "$BIN/kubeall" kube-proxy --config="$RUN/kube-proxy.yaml"
# Names of the cluster are answered, all others do not exist: nothing is asked outside.
cat >"$RUN/Corefile" <<C
cluster.local:53 in-addr.arpa:53 {
  bind $NODE_ADDRESS
  errors
  ready 127.0.0.1:8181
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $pki/coredns.kubeconfig
    pods insecure
    ttl 5
  }
  cache 5
}
.:53 {
  bind $NODE_ADDRESS
  template ANY ANY {
    rcode NXDOMAIN
  }
}
C
start coredns "$BIN/kubeall" coredns -conf "$RUN/Corefile"
# CoreDNS is a process on the node, so its Service has no pods to select.
"$BIN/kubeall" kubectl apply -f - >/dev/null <<C
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: $NODE_DNS
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-node, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
endpoints: [{addresses: ["$NODE_ADDRESS"], conditions: {ready: true}}]
C
