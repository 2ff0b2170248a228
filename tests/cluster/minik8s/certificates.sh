# One authority, and a certificate with a kubeconfig for every component and for the administrator: sourced by ../minik8s.sh.

make_certificates() {
    local folder=$STATE/pki number
    mkdir -p "$folder"
    chmod 700 "$folder"
    if [ ! -e "$folder/ca.crt" ]; then
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=minik8s-ca \
            -keyout "$folder/ca.key" -out "$folder/ca.crt" 2> /dev/null || die "the authority"
    fi
    [ -e "$folder/sa.key" ] || openssl genrsa -out "$folder/sa.key" 2048 2> /dev/null || die "sa.key"
    local names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local
    make_certificate apiserver /CN=kube-apiserver "IP:$NET.0.1,IP:$NET.255.1,IP:127.0.0.1,DNS:localhost,$names"
    make_certificate apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client
    make_identity admin /O=system:masters/CN=admin
    make_identity kcm /CN=system:kube-controller-manager
    make_identity scheduler /CN=system:kube-scheduler
    make_identity proxy /CN=system:kube-proxy
    for number in $(seq "$NODES"); do
        make_identity "node$number" "/O=system:nodes/CN=system:node:node$number" \
            "DNS:node$number,IP:$NET.0.$((10 + number))"
    done
}

make_identity() { # NAME SUBJECT [ALTERNATIVE_NAMES] : a certificate and a kubeconfig with it
    make_certificate "$@"
    local folder=$STATE/pki
    cat > "$folder/$1.conf" << END
apiVersion: v1
kind: Config
clusters:
- name: minik8s
  cluster: {server: "https://$NET.0.1:6443", certificate-authority-data: $(base64 -w0 < "$folder/ca.crt")}
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 < "$folder/$1.crt")
    client-key-data: $(base64 -w0 < "$folder/$1.key")
contexts: [{name: minik8s, context: {cluster: minik8s, user: $1}}]
current-context: minik8s
END
}

make_certificate() { # NAME SUBJECT [ALTERNATIVE_NAMES]
    local path=$STATE/pki/$1 authority=$STATE/pki/ca extensions
    [ -e "$path.crt" ] && return 0
    extensions=$(printf 'keyUsage=critical,digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth')
    [ -n "${3:-}" ] && extensions=$(printf '%s\nsubjectAltName=%s' "$extensions" "$3")
    {
        openssl ecparam -name prime256v1 -genkey -noout -out "$path.key" \
            && openssl req -new -key "$path.key" -subj "$2" -out "$path.csr" \
            && openssl x509 -req -in "$path.csr" -CA "$authority.crt" -CAkey "$authority.key" -days 3650 \
                -set_serial "0x$(openssl rand -hex 8)" -out "$path.crt" -extfile <(echo "$extensions")
    } 2> /dev/null || die "the certificate of $1"
}
