# Nodes: namespaces on this machine, each with containerd, kubelet and kube-proxy. Sourced by ../minik8s.sh.

start_node() { # NUMBER
    alive "node$1" && return 0
    write_node_files "$1"
    make_network "$1"
    make_cgroup "$MARK-node$1"
    start "node$1" nsenter --net="/run/netns/$MARK-$1" \
        unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc \
        env MINIK8S_CACHE="$CACHE" MINIK8S_STATE="$STATE" MINIK8S_NET="$NET" bash "$SELF" __node "$1"
}

change_node() { # VERB NODE
    local node=$2 folder=$STATE/nodes/$2
    case $1 in
        kill) stop "$node" KILL; until_ok 5 remove_cgroup "$MARK-$node" ;;
        start) start_node "${node#node}" ;;
        partition) ip link set "$MARK-n${node#node}" down ;;
        heal) ip link set "$MARK-n${node#node}" up ;;
        # It may be between two of its lives: the loop below starts none while there is this file.
        kubelet-stop) touch "$folder/kubelet.off"; in_node "$node" bash -c 'kill -9 $(cat /run/kubelet.pid) || true' ;;
        kubelet-start) rm -f "$folder/kubelet.off" ;;
        *) die "node kill|start|partition|heal|kubelet-stop|kubelet-start NODE" ;;
    esac
}

in_node() { # NODE COMMAND...
    local node=$1 pid
    shift
    alive "$node" || die "$node does not run"
    read -r pid _ < "$STATE/pid/$node"
    pid=$(pgrep -P "$pid" | head -1)
    nsenter -t "$pid" -m -u -i -n -p "$@"
}

node_numbers() { ls "$STATE/nodes" 2> /dev/null | sed 's/^node//'; }

# The first process of a node: everything on the node dies with it.
be_node() { # NUMBER
    local node=node$1 folder=$STATE/nodes/node$1 address=$NET.0.$((10 + $1))
    export LD_LIBRARY_PATH=$BINARIES/lib XTABLES_LIBDIR=$BINARIES/lib/xtables
    hostname "$node"
    mount --bind "$folder/varlib" /var/lib && mount --bind "$folder/varlog" /var/log \
        && mount -t tmpfs -o mode=755 tmpfs /run || exit 1
    mkdir -p /run/lock /run/netns
    mount --make-rshared /
    show_sysctls "$folder/sysctl"
    echo 1 > /proc/sys/net/ipv4/ip_forward
    echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
    rm -rf "$folder"/varlib/cni/networks "$folder"/varlib/cni/results # no pod survives a dead node
    trap 'kill $(jobs -p) 2> /dev/null; exit 0' TERM
    (while :; do
        containerd -c "$folder/containerd.toml" -l warn >> "$folder/containerd.log" 2>&1
        sleep 1
    done) &
    until_ok 60 ctr version || exit 1
    import_images "$folder/varlib/containerd"
    rm -f "$folder/kubelet.off"
    (while :; do
        while [ -e "$folder/kubelet.off" ]; do sleep 0.2; done
        kubelet --config "$folder/kubelet.yaml" --kubeconfig "$STATE/pki/$node.conf" --hostname-override "$node" \
            --node-ip "$address" --container-runtime remote --cert-dir /var/lib/kubelet/pki \
            --container-runtime-endpoint unix:///run/containerd/containerd.sock >> "$folder/kubelet.log" 2>&1 &
        echo $! > /run/kubelet.pid
        [ ! -e "$folder/kubelet.off" ] || kill -9 $!
        wait $!
        sleep 1
    done) &
    (while :; do
        kube-proxy --kubeconfig "$STATE/pki/proxy.conf" --hostname-override "$node" --cluster-cidr "$NET.0.0/16" \
            --proxy-mode iptables --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 \
            --conntrack-tcp-timeout-close-wait 0 --healthz-bind-address "" >> "$folder/kube-proxy.log" 2>&1
        sleep 1
    done) &
    while :; do wait -n 2> /dev/null || sleep 1; done
}

# The kubelet would set these for the whole machine: it sees the values it wants, in this mount namespace only.
show_sysctls() { # FOLDER
    local each
    for each in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
        kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        echo "${each#*=}" > "$1/$(basename "${each%=*}")"
        mount --bind "$1/$(basename "${each%=*}")" "/proc/sys/${each%=*}"
    done
}

import_images() { # FOLDER
    local image noted
    for image in "$BINARIES"/images/*.tar; do
        noted=$1/have-$(basename "$image")
        [ -e "$noted" ] || { ctr -n k8s.io image import "$image" && touch "$noted"; }
    done
}

add_image() { # NAME FOLDER
    local archive=$STATE/image.tar number
    make_image "$1" "$2" "$archive"
    for number in $(node_numbers); do
        in_node "node$number" ctr -n k8s.io image import "$archive" || die "the image $1 on node$number"
    done
    rm "$archive"
}

make_network() { # NUMBER
    local namespace=$MARK-$1 cable=$MARK-n$1 other
    ip netns list | grep -qw "$namespace" && return 0
    ip netns add "$namespace" && ip link add "$cable" type veth peer name eth0 netns "$namespace" \
        && ip link set "$cable" master "$MARK" up || die "the network of node$1"
    ip -n "$namespace" link set lo up
    ip -n "$namespace" addr add "$NET.0.$((10 + $1))/24" dev eth0
    ip -n "$namespace" link set eth0 up
    # kube-proxy and kubelet want a default route; this machine forwards nothing.
    ip -n "$namespace" route add default via "$NET.0.1"
    for other in $(seq "$NODES"); do
        [ "$other" = "$1" ] || ip -n "$namespace" route add "$NET.$other.0/24" via "$NET.0.$((10 + other))"
    done
    ip route replace "$NET.$1.0/24" via "$NET.0.$((10 + $1))" dev "$MARK"
}

cgroup_roots() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo /sys/fs/cgroup
    else
        ls -d /sys/fs/cgroup/*/ | sed 's#/$##' | sort -u
    fi
}

make_cgroup() { # NAME
    local root controller
    for root in $(cgroup_roots); do
        mkdir -p "$root/$1" 2> /dev/null || continue
        if [ "$root" = /sys/fs/cgroup ]; then
            for controller in $(cat "$root/cgroup.controllers"); do
                echo "+$controller" > "$root/cgroup.subtree_control"
                echo "+$controller" > "$root/$1/cgroup.subtree_control"
            done 2> /dev/null
        elif [ -e "$root/$1/cpuset.cpus" ]; then
            cat "$root/cpuset.cpus" > "$root/$1/cpuset.cpus"
            cat "$root/cpuset.mems" > "$root/$1/cpuset.mems"
        fi
    done
}

remove_cgroup() { # NAME : fails while a process is still dying in there
    local root code=0
    for root in $(cgroup_roots); do
        [ -d "$root/$1" ] || continue
        find "$root/$1" -depth -type d -exec rmdir {} + 2> /dev/null
        [ -d "$root/$1" ] && code=1
    done
    return $code
}

write_node_files() { # NUMBER
    local folder=$STATE/nodes/node$1 snapshotter=overlayfs
    mkdir -p "$folder"/{varlib/kubelet,varlib/containerd,varlib/cni,varlog,cni,sysctl}
    echo "nameserver $NET.0.1" > "$folder/resolv.conf"
    [ "$(stat -f -c %T "$folder")" = overlayfs ] && snapshotter=native
    write_containerd_settings "$folder" $snapshotter > "$folder/containerd.toml"
    write_kubelet_settings "$1" "$folder" > "$folder/kubelet.yaml"
    cat > "$folder/cni/10-minik8s.conflist" << END
{"cniVersion": "0.4.0", "name": "minik8s", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
  "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks",
           "ranges": [[{"subnet": "$NET.$1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
}

write_containerd_settings() { # FOLDER SNAPSHOTTER
    cat << END
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "minik8s.local/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$2"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$BINARIES/bin/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$BINARIES/cni"
    conf_dir = "$1/cni"
END
}

write_kubelet_settings() { # NUMBER FOLDER
    # A lost node is noticed after 16 s, where a site has 40 s.
    cat << END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $STATE/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/node$1.crt
tlsPrivateKeyFile: $STATE/pki/node$1.key
cgroupDriver: cgroupfs
cgroupRoot: /$MARK-node$1
clusterDNS: [$NET.0.1]
clusterDomain: cluster.local
resolvConf: $2/resolv.conf
failSwapOn: false
volumePluginDir: /var/lib/kubelet/volumeplugins
nodeStatusUpdateFrequency: 4s
nodeLeaseDurationSeconds: 12
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
oomScoreAdj: 0
serializeImagePulls: false
maxPods: 250
END
}
