# The control plane's processes: sourced by ../minik8s.sh. Every process has a log, and a record of its id and start time.

start_component() { # NAME
    local keys=$STATE/pki gates=TTLAfterFinished=true
    case $1 in
        etcd)
            start etcd etcd --name minik8s --data-dir "$STATE/etcd/data" --log-level warn \
                --listen-client-urls "http://$NET.0.1:2379" --advertise-client-urls "http://$NET.0.1:2379" \
                --listen-peer-urls "http://$NET.0.1:2380" --initial-advertise-peer-urls "http://$NET.0.1:2380" \
                --initial-cluster "minik8s=http://$NET.0.1:2380" ;;
        kube-apiserver)
            # What accounts of namespaces ask for, for tests of their rights.
            echo '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
                {"level": "None", "userGroups": ["system:nodes", "system:masters", "system:serviceaccounts:kube-system"]},
                {"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}]}' > "$STATE/audit.json"
            # A lost node's pods are given up after 20 s, where a site has 300 s.
            start kube-apiserver kube-apiserver --etcd-servers "http://$NET.0.1:2379" \
                --bind-address "$NET.0.1" --advertise-address "$NET.0.1" --secure-port 6443 \
                --service-cluster-ip-range "$NET.255.0/24" --allow-privileged=true \
                --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
                --client-ca-file "$keys/ca.crt" \
                --tls-cert-file "$keys/apiserver.crt" --tls-private-key-file "$keys/apiserver.key" \
                --kubelet-certificate-authority "$keys/ca.crt" --kubelet-preferred-address-types InternalIP \
                --kubelet-client-certificate "$keys/apiserver-kubelet.crt" \
                --kubelet-client-key "$keys/apiserver-kubelet.key" \
                --service-account-issuer https://kubernetes.default.svc.cluster.local \
                --service-account-key-file "$keys/sa.key" --service-account-signing-key-file "$keys/sa.key" \
                --default-not-ready-toleration-seconds 20 --default-unreachable-toleration-seconds 20 \
                --audit-policy-file "$STATE/audit.json" --audit-log-path "$STATE/log/audit.jsonl" \
                --feature-gates $gates --enable-aggregator-routing=false --event-ttl 2h ;;
        kube-controller-manager)
            start kube-controller-manager kube-controller-manager --kubeconfig "$keys/kcm.conf" \
                --authentication-kubeconfig "$keys/kcm.conf" --authorization-kubeconfig "$keys/kcm.conf" \
                --use-service-account-credentials --service-account-private-key-file "$keys/sa.key" \
                --root-ca-file "$keys/ca.crt" \
                --cluster-signing-cert-file "$keys/ca.crt" --cluster-signing-key-file "$keys/ca.key" \
                --node-monitor-period 2s --node-monitor-grace-period 16s \
                --bind-address "$NET.0.1" --port 0 --leader-elect=false --feature-gates $gates ;;
        kube-scheduler)
            start kube-scheduler kube-scheduler --kubeconfig "$keys/scheduler.conf" \
                --authentication-kubeconfig "$keys/scheduler.conf" --authorization-kubeconfig "$keys/scheduler.conf" \
                --bind-address "$NET.0.1" --port 0 --leader-elect=false ;;
        dns)
            start dns python3 "$PARTS/dns.py" "$STATE" "$NET" ;;
        *)
            die "start etcd|kube-apiserver|kube-controller-manager|kube-scheduler|dns" ;;
    esac
}

start() { # NAME COMMAND... : in the background
    local name=$1 pid
    shift
    alive "$name" && return 0
    setsid "$@" < /dev/null >> "$STATE/log/$name.log" 2>&1 8>&- 9>&- &
    pid=$!
    echo "$pid $(cut -d' ' -f22 "/proc/$pid/stat")" > "$STATE/pid/$name"
}

alive() { # NAME : whether the recorded process still runs, and no other has its id
    local pid started
    read -r pid started 2> /dev/null < "$STATE/pid/$1" || return 1
    [ "$(awk '$3 != "Z" {print $22}' "/proc/$pid/stat" 2> /dev/null)" = "$started" ]
}

stop() { # NAME SIGNAL
    local pid
    if alive "$1"; then
        read -r pid _ < "$STATE/pid/$1"
        kill "-$2" "$pid" 2> /dev/null
        until_ok 30 is_gone "$1"
    fi
    rm -f "$STATE/pid/$1"
}

is_gone() { ! alive "$1"; }
