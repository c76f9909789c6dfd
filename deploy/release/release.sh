#!/bin/sh
# Builds the archives of a release: the same source and the same Go give the same bytes, on any
# machine and in any folder.
#
#   deploy/release/release.sh [--dry-run] [--out DIR] [OS/ARCH ...]
#
# The commit has to carry a tag such as v1.2.3, and the tree has to be clean. With --dry-run neither
# is asked for: the archives say 0.0.0-dry-run, and only those of this machine are built where no
# other is named. DIR is dist where it is not given. In it are, for each OS/ARCH,
#
#   nudged-VERSION-OS-ARCH.tar.gz    the program, its licences and the files of deploy/systemd
#   nudged-VERSION-OS-ARCH.cdx.json  what the program is made of, in CycloneDX
#
# and SHA256SUMS. Nothing is published.
set -eu

fail() {
	echo "release: $*" >&2
	exit 1
}

dry='' out=dist
while [ $# -gt 0 ]; do
	case $1 in
	--dry-run) dry=yes ;;
	--out)
		[ $# -gt 1 ] || fail "--out needs a folder"
		shift
		out=$1
		;;
	-*) fail "unknown option $1" ;;
	*) break ;;
	esac
	shift
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."

tar --version 2>/dev/null | grep -q GNU || fail "needs GNU tar, whose archives do not depend on the machine"

if [ -n "$dry" ]; then
	version=0.0.0-dry-run revision=unknown epoch=0
	[ $# -gt 0 ] || set -- "$(go env GOHOSTOS)/$(go env GOHOSTARCH)"
else
	tag=$(git describe --tags --exact-match --match 'v[0-9]*' HEAD) || fail "HEAD carries no tag such as v1.2.3"
	[ -z "$(git status --porcelain)" ] || fail "the tree is not clean"
	version=${tag#v} revision=$(git rev-parse HEAD) epoch=$(git log -1 --format=%ct)
	[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64
fi

# What the environment of a machine may change in a binary.
unset GOAMD64 GOARM64 GOEXPERIMENT
export CGO_ENABLED=0 GOFLAGS=-mod=readonly
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# licences prints those of every module that is in the program for $1/$2.
licences() {
	GOOS=$1 GOARCH=$2 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' \
		./cmd/nudged >"$work/modules"
	LC_ALL=C sort -u "$work/modules" | while read -r module number folder; do
		for file in "$folder"/LICENSE* "$folder"/COPYING* "$folder"/NOTICE*; do
			[ ! -f "$file" ] || {
				echo "==== $module $number: ${file##*/}"
				cat "$file"
				echo
			}
		done
	done
}

sums=
for target; do
	os=${target%/*} arch=${target#*/}
	[ "$os/$arch" = "$target" ] || fail "$target is not of the form OS/ARCH"
	name=nudged-$version-$os-$arch
	folder=$work/$name
	mkdir -p "$folder"
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags="-s -w -X main.version=$version -X main.revision=$revision" \
		-o "$folder/nudged" ./cmd/nudged
	go run ./deploy/release/sbom --version="$version" --epoch="$epoch" "$folder/nudged" >"$out/$name.cdx.json"
	cp LICENSE README.md CHANGELOG.md "$folder"
	licences "$os" "$arch" >"$folder/LICENSES-of-modules.txt"
	cp -R deploy/systemd "$folder"
	tar --create --directory="$work" --format=ustar --sort=name --mtime="@$epoch" \
		--owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$name" | gzip -9 -n >"$out/$name.tar.gz"
	sums="$sums $name.tar.gz $name.cdx.json"
	echo "$out/$name.tar.gz"
done
cd "$out"
# shellcheck disable=SC2086 # names without blanks
sha256sum $sums >SHA256SUMS
