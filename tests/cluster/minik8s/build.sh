# The binaries and images of the cluster, from Debian's packages: sourced by ../minik8s.sh.
#
# Nothing is installed: packages are unpacked in the cache. Kubernetes itself is compiled from Debian's source, with two
# repairs: one generated file is missing there, and its copy of reflect2 corrupts memory when it is built with Go 1.18
# or newer. A build that was killed goes on where it was: Go keeps what it has compiled in $WORK.

WORK=$CACHE/work

build() {
    [ -e "$BINARIES/complete" ] && return 0
    mkdir -p "$CACHE"
    exec 8> "$CACHE/build.lock"
    flock 8
    [ -e "$BINARIES/complete" ] && return 0
    local tool
    for tool in apt-get dpkg python3 openssl ip unshare nsenter flock tar xz; do
        command -v "$tool" > /dev/null || die "$tool is missing (apt-get install iproute2 util-linux openssl python3 xz-utils)"
    done
    prepare_apt
    fetch_programs
    build_images
    build_kubernetes
    touch "$BINARIES/complete"
    chmod -R u+w "$WORK" && rm -rf "$WORK"
    say "the binaries are complete: $(du -sh "$BINARIES" | cut -f1) in $BINARIES"
}

# An apt of our own, with the mirror that this machine uses.
prepare_apt() {
    say "package lists"
    mkdir -p "$WORK"/{apt/lists/partial,apt/cache/archives/partial,debs,root}
    local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
    # The lock is that of tests which install packages (packages.py): apt itself does not wait.
    [ -n "$(find_mirror)" ] || flock "${TMPDIR:-/tmp}/trainmaster-tests-$(id -u).lock" apt-get -qq update
    mirror=$(find_mirror)
    [ -n "$mirror" ] || die "apt knows no source for Debian 12 (bookworm)"
    printf "deb%s [signed-by=$keys] $mirror bookworm main\n" '' '-src' > "$WORK/apt/sources.list"
    cat > "$WORK/apt/apt.conf" << END
Dir::Etc::sourcelist "$WORK/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::Lists "$WORK/apt/lists";
Dir::Cache "$WORK/apt/cache";
APT::Sandbox::User "root";
END
    APT_CONFIG=$WORK/apt/apt.conf apt-get -qq update || die "apt-get update"
}

find_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2> /dev/null | awk '$2 == "bookworm" {print $1; exit}'
}

fetch() { # FOLDER PACKAGE... : unpacks packages into a folder
    local folder=$1 package
    shift
    mkdir -p "$folder"
    (cd "$WORK/debs" && APT_CONFIG=$WORK/apt/apt.conf apt-get -qq download "$@") || die "apt-get download $*"
    for package in "$@"; do
        dpkg -x "$(ls "$WORK/debs/${package}"_*.deb | tail -1)" "$folder" || die "dpkg -x $package"
    done
}

fetch_programs() {
    say "etcd, containerd, runc, network plugins, iptables"
    local root=$WORK/root name
    fetch "$root" etcd-server containerd runc containernetworking-plugins iptables libip4tc2 libip6tc2 libxtables12 \
        libmnl0 libnfnetlink0 libnetfilter-conntrack3 conntrack
    rm -rf "$BINARIES"
    mkdir -p "$BINARIES"/{bin,lib,images}
    cp "$root"/usr/bin/{etcd,containerd,containerd-shim-runc-v2,ctr} "$BINARIES/bin/"
    cp "$root"/usr/sbin/{runc,conntrack,xtables-legacy-multi} "$BINARIES/bin/"
    for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
        ln -sf xtables-legacy-multi "$BINARIES/bin/$name"
    done
    cp -a "$root"/usr/lib/x86_64-linux-gnu/*.so* "$root"/usr/lib/x86_64-linux-gnu/xtables "$BINARIES/lib/"
    cp -a "$root/usr/lib/cni" "$BINARIES/cni"
}

build_kubernetes() {
    say "Go 1.19 and the source of Kubernetes $VERSION"
    fetch "$WORK/go" golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev
    (cd "$WORK/debs" && APT_CONFIG=$WORK/apt/apt.conf apt-get -qq source --download-only kubernetes) \
        || die "apt-get source kubernetes"
    export GOROOT=$WORK/go/usr/lib/go-1.19 GOPATH=$WORK/gopath GOCACHE=$WORK/gocache
    export GO111MODULE=off GOFLAGS= GOPROXY=off CGO_ENABLED=0
    local go=$GOROOT/bin/go source=$GOPATH/src/k8s.io/kubernetes
    rm -rf "$source"
    mkdir -p "$source"
    tar xzf "$WORK"/debs/kubernetes_*.orig.tar.gz --strip-components=1 -C "$source" || die "the source"
    cd "$source" || die "$source"
    rm -rf vendor/github.com/modern-go/reflect2
    cp -a "$WORK/go/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/ || die "reflect2"
    generate_openapi
    say "kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, kubectl (one binary)"
    mkdir -p cmd/minik8s
    cp "$PARTS/components.go" cmd/minik8s/main.go
    "$go" build -tags providerless,dockerless -ldflags "-s -w $(version_flags)" -o "$BINARIES/bin/components" \
        ./cmd/minik8s || die "go build"
    local name
    for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do
        ln -sf components "$BINARIES/bin/$name"
    done
    cd /
    unset GOROOT GOPATH GOCACHE
}

# The one generated file that Debian's source lacks.
generate_openapi() {
    say "openapi-gen"
    "$go" build -o "$WORK/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen || die "openapi-gen"
    local packages
    packages=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg cmd plugin staging/src/k8s.io \
        | grep -v -e /testdata/ -e _test.go -e '^staging/src/k8s.io/code-generator/' \
            -e '^staging/src/k8s.io/sample-apiserver/' \
        | xargs -n1 dirname | sort -u | sed 's#^staging/src/#vendor/#; s#^#k8s.io/kubernetes/#' | paste -sd,)
    PATH=$GOROOT/bin:$PATH "$WORK/openapi-gen" --logtostderr -i "$packages" -r /dev/null -O zz_generated.openapi \
        -p k8s.io/kubernetes/pkg/generated/openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
        || die "openapi-gen"
}

version_flags() {
    local place
    for place in component-base/version client-go/pkg/version; do
        place=k8s.io/kubernetes/vendor/k8s.io/$place
        printf -- '-X %s.%s ' "$place" "gitVersion=v$VERSION" "$place" gitMajor=1 "$place" gitMinor=20 \
            "$place" gitTreeState=archive "$place" buildDate=2021-01-13T13:20:00Z
    done
}

# There is no registry: images are made of Debian's packages, and every node imports them when it starts.
build_images() {
    say "images: pause, busybox, python"
    local images=$WORK/images name
    rm -rf "$images"
    mkdir -p "$images"/{pause,busybox,python}
    fetch "$WORK/busybox" busybox-static
    make_busybox_image "$images/busybox"
    make_pause_image "$images/pause"
    make_python_image "$images/python"
    make_image minik8s.local/pause:1 "$images/pause" "$BINARIES/images/pause.tar"
    make_image minik8s.local/busybox:1 "$images/busybox" "$BINARIES/images/busybox.tar"
    make_image minik8s.local/python:3.11 "$images/python" "$BINARIES/images/python.tar"
}

make_image() { # NAME FOLDER OUTPUT
    python3 "$PARTS/image.py" "$@" || die "the image $1"
}

make_busybox_image() { # FOLDER
    make_base "$1"
    add_busybox "$1/bin"
}

make_pause_image() { # FOLDER
    cp "$WORK/busybox/bin/busybox" "$1/busybox"
    cat > "$1/pause" << 'END'
#!/busybox sh
trap "exit 0" TERM INT
while :; do
    /busybox sleep 3600 & wait $!
done
END
    chmod 755 "$1/pause"
}

make_python_image() { # FOLDER
    local root=$1 name
    make_base "$root"
    rm -rf "$root/bin"
    for name in bin lib lib64 sbin; do
        mkdir -p "$root/usr/$name"
        ln -s "usr/$name" "$root/$name"
    done
    fetch "$WORK/python" libc6 libcrypt1 libgcc-s1 libstdc++6 libgomp1 zlib1g libbz2-1.0 liblzma5 libffi8 libssl3 \
        libexpat1 libuuid1 libsqlite3-0 libreadline8 libtinfo6 libncursesw6 libdb5.3 \
        python3.11-minimal libpython3.11-minimal libpython3.11-stdlib python3-minimal
    for name in lib lib64 bin sbin; do
        [ -d "$WORK/python/$name" ] && cp -a "$WORK/python/$name/." "$root/usr/$name/"
    done
    cp -a "$WORK/python/usr/." "$root/usr/"
    rm -rf "$root/usr/share/"{doc,man,locale,lintian}
    cp -a "$WORK/python/etc/." "$root/etc/" 2> /dev/null
    add_busybox "$root/usr/bin"
}

add_busybox() { # FOLDER : all its programs that are not there yet
    local name
    cp "$WORK/busybox/bin/busybox" "$1/"
    "$WORK/busybox/bin/busybox" --list | while read -r name; do
        [ -e "$1/$name" ] || ln -s busybox "$1/$name"
    done
}

make_base() { # FOLDER : what every image has
    mkdir -p "$1"/{bin,etc,proc,sys,dev,tmp,root,run,var/tmp,usr/bin}
    chmod 1777 "$1/tmp" "$1/var/tmp"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' > "$1/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' > "$1/etc/group"
    printf 'hosts: files dns\n' > "$1/etc/nsswitch.conf"
}
