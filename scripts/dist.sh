#!/usr/bin/env bash
# Puts together what is handed out, in target/dist: an archive, a Debian package, an image, a list
# of what is in the program (SBOM) and the checksums of all of them.
#
#   scripts/dist.sh                      builds a static program with the profile release first
#   PROFILE=quick scripts/dist.sh        the same with another profile
#   WHARF_BIN=path scripts/dist.sh       takes a program that is there
#   scripts/dist.sh deb                  only one of: archive, deb, image, sbom
#
# The same sources give the same bytes, as far as the compiler does: times are those of the commit.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
cd "$root"
out="$root/target/dist"
wanted="${1:-all}"
profile="${PROFILE:-release}"
version="$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)"
machine="$(uname -m)"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"

fail() {
    echo "dist: $1" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null 2>&1 || fail "$1 is missing; it is in the package $2"
}

# A program that needs nothing of the machine it runs on but the kernel.
build() {
    local triple="$machine-unknown-linux-gnu"
    echo "==> building a static wharf ($profile)"
    RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
        "${CARGO:-cargo}" build --profile "$profile" --locked -p wharf-cli --target "$triple"
    [ "$profile" = dev ] && profile=debug
    bin="$root/target/$triple/$profile/wharf"
}

# A tar whose bytes depend on nothing but what is in it. $1 is the folder, the rest are options.
steady_tar() {
    local folder="$1"
    shift
    tar --directory "$folder" --create --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$SOURCE_DATE_EPOCH" "$@" .
}

# The files of an installation below $1, with the program in $2: what a package and an archive share.
furnish() {
    local to="$1" programs="$1$2"
    install -D -m 755 "$bin" "$programs/wharf"
    # A program that was built with debug information is stripped; one that was not stays as it is.
    strip "$programs/wharf" 2>/dev/null || true
    "$bin" --json man "$to/usr/share/man/man1" >/dev/null
    gzip -9 -n "$to"/usr/share/man/man1/*.1
    mkdir -p "$to/usr/share/bash-completion/completions" "$to/usr/share/zsh/vendor-completions" \
        "$to/usr/share/fish/vendor_completions.d"
    "$bin" completions bash >"$to/usr/share/bash-completion/completions/wharf"
    "$bin" completions zsh >"$to/usr/share/zsh/vendor-completions/_wharf"
    "$bin" completions fish >"$to/usr/share/fish/vendor_completions.d/wharf.fish"
    install -D -m 644 deploy/systemd/wharf.service "$to/usr/lib/systemd/system/wharf.service"
    install -D -m 644 deploy/systemd/wharf.socket "$to/usr/lib/systemd/system/wharf.socket"
    install -D -m 644 deploy/systemd/user/wharf.service "$to/usr/lib/systemd/user/wharf.service"
    install -D -m 644 deploy/systemd/sysusers.conf "$to/usr/lib/sysusers.d/wharf.conf"
}

archive() {
    local name="wharf-$version-$machine" stage
    stage="$(mktemp -d)"
    furnish "$stage/$name" /usr/bin
    # An archive is unpacked into /usr/local; `wharf service` writes units for any other place.
    sed -i 's#^ExecStart=/usr/bin/#ExecStart=/usr/local/bin/#' "$stage/$name"/usr/lib/systemd/*/wharf.service
    mv "$stage/$name/usr"/* "$stage/$name/" && rmdir "$stage/$name/usr"
    install -D -m 644 -t "$stage/$name/share/doc/wharf" README.md LICENSE-APACHE LICENSE-MIT CHANGELOG.md
    steady_tar "$stage" | gzip -n >"$out/$name.tar.gz"
    rm -rf "$stage"
    echo "    $name.tar.gz"
}

deb() {
    need dpkg-deb dpkg
    local arch name stage
    arch="$(dpkg --print-architecture)"
    name="wharf_${version}_$arch.deb"
    stage="$(mktemp -d)"
    chmod 755 "$stage"
    furnish "$stage" /usr/bin
    mkdir -p "$stage/DEBIAN"
    install -D -m 644 LICENSE-MIT "$stage/usr/share/doc/wharf/copyright"
    sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" \
        -e "s/@SIZE@/$(du -sk "$stage" | cut -f1)/" -e "s/@DEPENDS@/$(needed_packages)/" \
        deploy/debian/control | sed '/^Depends: $/d' >"$stage/DEBIAN/control"
    for script in postinst prerm postrm; do
        install -m 755 "deploy/debian/$script" "$stage/DEBIAN/$script"
    done
    find "$stage" -type d -exec chmod 755 {} +
    find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zgzip --build "$stage" "$out/$name" >/dev/null
    rm -rf "$stage"
    echo "    $name"
}

is_static() {
    ! ldd "$bin" >/dev/null 2>&1
}

# What a program that is not static needs; one that is needs nothing.
needed_packages() {
    is_static || echo "libc6, libgcc-s1"
}

# An image with nothing in it but the program, as an archive of an OCI layout. It is written here:
# no step of it runs anything inside, so no other tool is needed.
image() {
    local name="wharf-$version-$machine-oci.tar" stage layout layer config arch
    case "$machine" in
        x86_64) arch=amd64 ;;
        aarch64) arch=arm64 ;;
        *) arch="$machine" ;;
    esac
    stage="$(mktemp -d)"
    layout="$(mktemp -d)"
    mkdir -p "$stage/data" "$stage/etc/ssl/certs" "$stage/usr/bin"
    install -D -m 755 "$bin" "$stage/usr/bin/wharf"
    strip "$stage/usr/bin/wharf" 2>/dev/null || true
    if ! is_static; then
        # Libraries under the very names by which the program asks for them.
        ldd "$bin" | grep -o '/[^ ]*' | while read -r library; do
            install -D -m 755 "$(readlink -f "$library")" "$stage$library"
        done
    fi
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] ||
        cp /etc/ssl/certs/ca-certificates.crt "$stage/etc/ssl/certs/"
    printf 'root:x:0:0:root:/:/sbin/nologin\nwharf:x:65532:65532:wharf:/data:/sbin/nologin\n' >"$stage/etc/passwd"
    printf 'root:x:0:\nwharf:x:65532:\n' >"$stage/etc/group"
    chmod -R u=rwX,go=rX "$stage"
    # The home belongs to the account that the image runs as.
    {
        steady_tar "$stage" --exclude=./data --exclude=./tmp >"$layout/layer.tar"
        mkdir -p "$layout/own/data" "$layout/own/tmp"
        chmod 700 "$layout/own/data"
        chmod 1777 "$layout/own/tmp"
        tar --directory "$layout/own" --append --file "$layout/layer.tar" --sort=name --owner=65532 \
            --group=65532 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" ./data ./tmp
    }
    mkdir -p "$layout/oci/blobs/sha256"
    local diff created
    diff="$(sha256sum "$layout/layer.tar" | cut -d' ' -f1)"
    gzip -n "$layout/layer.tar"
    layer="$(blob "$layout" "$layout/layer.tar.gz")"
    created="$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
    cat >"$layout/config.json" <<JSON
{"created":"$created","architecture":"$arch","os":"linux","config":{"User":"65532:65532","Env":["PATH=/usr/bin","HOME=/data","WHARF_HOME=/data","WHARF_LISTEN=0.0.0.0:7420","SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],"Entrypoint":["/usr/bin/wharf"],"Cmd":["up"],"WorkingDir":"/data","ExposedPorts":{"7420/tcp":{}},"Volumes":{"/data":{}},"StopSignal":"SIGTERM","Labels":{"org.opencontainers.image.title":"wharf","org.opencontainers.image.version":"$version","org.opencontainers.image.licenses":"MIT OR Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:$diff"]},"history":[{"created":"$created","created_by":"scripts/dist.sh"}]}
JSON
    config="$(blob "$layout" "$layout/config.json")"
    cat >"$layout/manifest.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json",$config},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip",$layer}]}
JSON
    local manifest
    manifest="$(blob "$layout" "$layout/manifest.json")"
    printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci/oci-layout"
    printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"wharf:%s"}}]}' \
        "$manifest" "$arch" "$version" >"$layout/oci/index.json"
    steady_tar "$layout/oci" >"$out/$name"
    rm -rf "$stage" "$layout"
    echo "    $name"
}

# Puts a file among the blobs of the layout in $1 and says how a descriptor names it.
blob() {
    local digest size
    digest="$(sha256sum "$2" | cut -d' ' -f1)"
    size="$(stat -c %s "$2")"
    cp "$2" "$1/oci/blobs/sha256/$digest"
    printf '"digest":"sha256:%s","size":%s' "$digest" "$size"
}

sbom() {
    local name="wharf-$version.cdx.json"
    "${CARGO:-cargo}" xtask sbom >"$out/$name"
    echo "    $name"
}

sums() {
    (cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort |
        xargs sha256sum >SHA256SUMS)
    echo "    SHA256SUMS"
}

[ "$(uname -s)" = Linux ] || fail "packages are made on Linux"
if [ -n "${WHARF_BIN:-}" ]; then
    bin="$(readlink -f "$WHARF_BIN")"
elif [ "$wanted" != sbom ]; then
    scripts/setup.sh build
    build
fi
[ "$wanted" = sbom ] || [ -x "$bin" ] || fail "there is no program at $bin"
mkdir -p "$out"
echo "==> packing into target/dist"
case "$wanted" in
    all)
        rm -rf "${out:?}"/*
        archive
        deb
        image
        sbom
        ;;
    archive | deb | image | sbom) "$wanted" ;;
    *) fail "unknown word '$wanted'; use archive, deb, image or sbom" ;;
esac
sums
