#!/bin/bash
# in-guest.sh PROGRAM [ARGUMENTS]: runs a program of this machine as root on the kernel that world `vm` boots (Linux 6.1), in QEMU under
# virtual time, and prints what it says; the exit status is the program's. So what needs a kernel is tried on another one:
#
#   cargo test -p paceline-kernel --test kernel --no-run          # prints where the program is
#   scripts/linux/in-guest.sh target/debug/deps/kernel-… the_verifier --nocapture
#
# Needs qemu-system-x86_64, busybox and cpio. KERNEL: folder of an unpacked linux-image package, by default the one that world `vm` keeps.
# WITH: programs of this machine that a script needs there, "bash ip tc iperf3"; busybox has the rest.
set -euo pipefail
program=$(readlink -f "${1:?in-guest.sh PROGRAM [ARGUMENTS]}")
shift
cache=${PACELINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/paceline}
kernel=${KERNEL:-${PACELINE_VM_KERNEL:-$cache/vm/kernel}}
image=$(find "$kernel/boot" -name 'vmlinu[xz]-*' 2>/dev/null | sort | head -1)
[ -n "$image" ] || { echo "in-guest.sh: no kernel in $kernel/boot: any run --on vm fetches one" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp,run,modules}
tools=()
for name in ${WITH:-} busybox; do tools+=("$(command -v "$name")"); done
cp -L "${tools[@]}" "$root/bin/"
for file in "$program" $(ldd "$program" "${tools[@]}" 2>/dev/null | grep -o '^[[:space:]].*' | grep -o '/[^ ]*' | sort -u); do
    mkdir -p "$root${file%/*}"
    cp -L "$file" "$root$file"
done
find "$kernel/lib/modules/${image##*/vmlinu[xz]-}/kernel" -name 'tcp_*.ko' -o -name tun.ko -o -name veth.ko -o -name 'sch_*.ko' | while read -r module; do
    cp "$module" "$root/modules/"
done
{
    echo '#!/bin/busybox sh'
    printf '%q' "$program"
    printf ' %q' "$@"
    echo
} >"$root/program"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module" 2>/dev/null; done
ip link set lo up
sh /program >/dev/ttyS1 2>&1
echo "exit $?" >/dev/ttyS1
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"
qemu-system-x86_64 -accel tcg,thread=single -icount shift=1,align=off,sleep=off -cpu max -smp 1 -m 2048 -display none -no-reboot \
    -kernel "$image" -initrd "$work/initrd" -append "console=ttyS0 panic=-1 quiet mitigations=off nokaslr" \
    -serial "file:$work/console" -serial "file:$work/said"
tr -d '\r' <"$work/said" | sed '$d'
status=$(tr -d '\r' <"$work/said" | sed -n '$s/^exit //p')
[ -n "$status" ] || { tail -20 "$work/console" >&2; exit 2; }
exit "$status"
