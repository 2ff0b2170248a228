#!/bin/bash
# A real Kubernetes on one Debian 12 machine, for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, a
# name server, and nodes of their own mount, process and network namespaces with containerd, runc, kubelet and kube-proxy.
#
#   minik8s.sh up | down | status | build | env | kubectl ARGUMENTS...
#   minik8s.sh guard                     takes the cluster down when its standard input ends
#   minik8s.sh kill|start COMPONENT      kube-apiserver, kube-scheduler, ...
#   minik8s.sh image NAME FOLDER         an image made of a folder, on every node
#   minik8s.sh node kill|start|partition|heal|kubelet-stop|kubelet-start NODE
#
# MINIK8S_CACHE  binaries and images, kept by "down"                   default ~/.cache/trainmaster-tests/kubernetes
# MINIK8S_STATE  everything of the running cluster, removed by "down"  default $MINIK8S_CACHE/state
# MINIK8S_NET    first two numbers of its private network              default 10.98
# MINIK8S_NODES  number of nodes                                       default 2
#
# Needs root and the kernel's overlay, bridge, veth and netfilter. Of the network: Debian's packages, while it is built.
# Pods reach each other and the API server, nothing else. hostPath below /var/lib, /var/log and /run is the node's own;
# any other is this machine's, so that all nodes share it.
set -u -o pipefail
export LC_ALL=C
SELF=$(readlink -f "$0")
PARTS=$(dirname "$SELF")/minik8s
CACHE=${MINIK8S_CACHE:-$HOME/.cache/trainmaster-tests/kubernetes}
STATE=${MINIK8S_STATE:-$CACHE/state}
NODES=${MINIK8S_NODES:-2}
NET=${MINIK8S_NET:-10.98}
VERSION=1.20.2
BINARIES=$CACHE/v$VERSION-1
# What this machine calls the parts of this cluster; another cluster has another network.
MARK=mk${NET/./x}
export PATH=$BINARIES/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin

say() { printf '[minik8s %4ds] %s\n' "$SECONDS" "$*" >&2; }
die() { say "FAILED: $*"; exit 1; }
kc() { kubectl --kubeconfig "$STATE/pki/admin.conf" "$@"; }
until_ok() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -ge $end ] && return 1
        sleep 0.2
    done
}

. "$PARTS/build.sh"
. "$PARTS/certificates.sh"
. "$PARTS/components.sh"
. "$PARTS/nodes.sh"

up() {
    [ "$(id -u)" = 0 ] || die "must be root"
    case "$STATE/ $CACHE/" in
        /run/* | /var/lib/* | /var/log/* | *" /run/"* | *" /var/lib/"* | *" /var/log/"*)
            die "MINIK8S_CACHE and MINIK8S_STATE must not be below /run, /var/lib or /var/log" ;;
    esac
    build
    mkdir -p "$STATE"/{log,pid,etcd,nodes}
    exec 9> "$STATE/lock"
    flock 9
    say "certificates"
    make_certificates
    if ! ip link show "$MARK" > /dev/null 2>&1; then
        ip link add "$MARK" type bridge && ip addr add "$NET.0.1/24" dev "$MARK" && ip link set "$MARK" up || die "bridge"
    fi
    mountpoint -q "$STATE/etcd" || mount -t tmpfs -o size=1g,mode=700 tmpfs "$STATE/etcd" || die "tmpfs"
    say "control plane"
    start_component etcd
    start_component kube-apiserver
    until_ok 120 kc get --raw /readyz || die "kube-apiserver is not ready (see $STATE/log/kube-apiserver.log)"
    start_component kube-controller-manager
    start_component kube-scheduler
    start_component dns
    wait_for_nodes
    until_ok 20 answers_names || die "the name server (see $STATE/log/dns.log)"
    say "up: export KUBECONFIG=$STATE/pki/admin.conf PATH=$BINARIES/bin:\$PATH"
}

wait_for_nodes() {
    local number name
    for number in $(seq "$NODES"); do start_node "$number"; done
    say "waiting for $NODES nodes"
    until_ok 60 kc get serviceaccount default || die "no default service account (see $STATE/log/kube-controller-manager.log)"
    for number in $(seq "$NODES"); do
        name=node$number
        until_ok 120 kc get node "$name" && kc wait --for=condition=Ready "node/$name" --timeout=120s > /dev/null \
            || die "$name is not ready (see $STATE/nodes/$name/kubelet.log)"
    done
}

down() {
    [ -d "$STATE" ] || return 0
    exec 9> "$STATE/lock"
    flock 9
    local name number
    for number in $(node_numbers); do stop "node$number" KILL; done
    for name in dns kube-scheduler kube-controller-manager kube-apiserver etcd; do stop "$name" KILL; done
    for number in $(node_numbers); do
        ip netns del "$MARK-$number" 2> /dev/null
        ip link del "$MARK-n$number" 2> /dev/null
        until_ok 10 remove_cgroup "$MARK-node$number"
    done
    ip link show "$MARK" > /dev/null 2>&1 && ip link del "$MARK"
    while mountpoint -q "$STATE/etcd"; do umount -l "$STATE/etcd" || break; done
    rm -rf "$STATE"
    say "down"
}

status() {
    local name code=0
    for name in etcd kube-apiserver kube-controller-manager kube-scheduler dns $(node_numbers | sed 's/^/node/'); do
        if alive "$name"; then
            printf '%-26s running (process %s)\n' "$name" "$(cut -d' ' -f1 "$STATE/pid/$name")"
        else
            printf '%-26s DOWN\n' "$name"
            code=1
        fi
    done
    [ $code = 0 ] && kc get nodes -o wide && kc get pods -A -o wide
    return $code
}

answers_names() {
    python3 - "$NET.0.1" << 'END'
import socket, struct, sys
labels = "kubernetes.default.svc.cluster.local".split(".")
name = b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0\0\1\0\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
    asker.settimeout(1)
    asker.sendto(struct.pack(">6H", 7, 256, 1, 0, 0, 0) + name, (sys.argv[1], 53))
    answers, = struct.unpack(">H", asker.recv(512)[6:8])
sys.exit(0 if answers else 1)
END
}

verb=${1:-}
[ $# -gt 0 ] && shift
case $verb in
    up) up ;;
    down) down ;;
    status) status ;;
    build) build ;;
    env) echo "export KUBECONFIG=$STATE/pki/admin.conf PATH=$BINARIES/bin:\$PATH" ;;
    kubectl) kc "$@" ;;
    guard) cat > /dev/null; down ;;
    kill) stop "$1" KILL ;;
    start) start_component "$1" ;;
    image) add_image "$@" ;;
    node) change_node "$@" ;;
    __node) be_node "$1" ;;
    *) sed -n '2,18p' "$SELF" | cut -c3-; exit 2 ;;
esac
