#!/bin/sh
# Holds a bed: a systemd that is PID 1 of its own namespaces, over a throwaway overlay of this host. `systemd_bed.py` starts it:
#
#   unshare --mount --propagation=private sh systemd_bed.sh DIR [SOURCE TARGET]…
#
# 1. It is told one word per line: `boot` answers the pid of who started the manager, `wait` answers `ended` when that is over. What
#    the manager wrote is in a tmpfs here, so that the next boot finds it. Whatever is over is over when this ends.
# 2. At the end of its stdin, however whoever started it ended, it kills the bed, takes away its cgroup and ends. Should it be killed
#    itself, the kernel kills the bed (PR_SET_PDEATHSIG, and a pid namespace without its first process).
# 3. The network is the host's: a homeserver and a model on loopback are beside the bed. So nothing that touches a network may run in
#    it, nor anything that touches the clock, modules, devices or sysctls: of the host's own units only a few are kept, generators
#    none, and the bed has no capability for it. /dev has the harmless nodes alone, /sys is read-only, and /proc/sys is until the
#    manager has begun: it raises limits there. Then /proc must be whole: a masked one may not be mounted anew in the user
#    namespace of a sandbox.
set -eu

LOST=-sys_time,-sys_module,-sys_rawio,-net_admin,-mac_admin,-mac_override,-syslog,-wake_alarm,-block_suspend,-audit_control,-audit_read

hold() {
    mount -t tmpfs -o size=2g,mode=755 tmpfs "$base"
    mkdir "$base/upper" "$base/work" "$base/root" "$base/cgroup"
    mount -t cgroup2 cgroup2 "$base/cgroup"
    above=$base/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
    for old in "$above"/mind-bed-*; do # of one that was killed
        grep -qs '^State:.[^ZX]' "/proc/${old##*-}/status" || clear_group "$old" || true
    done
    group=$above/mind-bed-$$
    mkdir "$group"
    starter=
    while read -r word; do
        case $word in
        boot)
            # shellcheck disable=SC2016 # that shell's own
            sh -c 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"' sh "$group" \
                setpriv --pdeathsig KILL --bounding-set "$LOST" \
                unshare --fork --kill-child --pid --mount --cgroup --ipc --uts \
                sh "$0" init "$base" "$@" </dev/null >&2 &
            starter=$!
            echo "$starter"
            ;;
        wait)
            finish
            echo ended
            ;;
        esac
    done
    [ -z "$starter" ] || kill -9 "$starter" 2>/dev/null || true
    finish
    rmdir "$group"
}

# Below it, and it where it is empty then; fails where something is left.
clear_group() {
    [ -z "$(find "$1" -depth -type d ! -exec rmdir {} \; -print 2>/dev/null)" ]
}

# Until the manager and all that it started is gone.
finish() {
    [ -z "$starter" ] || wait "$starter" || true
    starter=
    for _ in $(seq 100); do
        clear_group "$group" && break
        sleep 0.05
    done
    mkdir -p "$group"
}

start() {
    root=$base/root
    for _ in $(seq 100); do # the overlay of the boot before goes when its last process has
        mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$root" && break
        sleep 0.05
    done
    mount -t proc proc "$root/proc"
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,bind,ro "$root/proc/sys"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for node in null zero full random urandom tty; do
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    while [ $# -ge 2 ]; do
        mkdir -p "$root$2"
        mount --bind "$1" "$root$2"
        mount -o remount,bind,ro "$root$2"
        shift 2
    done
    [ -e "$base/upper/etc/mind-bed" ] || clear_host
    cd "$root"
    mkdir -p old
    pivot_root . old
    umount -l /old
    mount --make-rshared / # as the manager does where it is told of no container: credentials come by propagation
    exec env -i container=mind-bed PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
}

# What of the host's own must not run, or be seen, in the bed.
clear_host() {
    etc=$root/etc/systemd
    rm -rf "$etc/system" "$etc/system-generators" "$etc/journald.conf.d" "$root/usr/local/lib/systemd" "$root/var/log/journal" \
        "$root/etc/mind" "$root/var/lib/mind"
    mkdir -p "$etc/system" "$etc/system-generators" "$etc/journald.conf.d" "$root/var/log/journal"
    : >"$root/etc/fstab"
    echo mind-bed >"$root/etc/hostname"
    : >"$root/etc/machine-id"
    printf '[Journal]\nStorage=persistent\nSystemMaxUse=200M\nRateLimitIntervalSec=0\n' >"$etc/journald.conf.d/bed.conf"
    ln -s /lib/systemd/system/multi-user.target "$etc/system/default.target"
    for path in "$root"/lib/systemd/system-generators/* "$root"/usr/local/lib/systemd/system-generators/*; do
        ln -sf /dev/null "$etc/system-generators/${path##*/}"
    done
    for path in "$root"/lib/systemd/system/*.target.wants/*; do
        case ${path##*/} in
        dbus.* | systemd-journald.* | systemd-journald-dev-log.socket | systemd-journal-flush.service) ;;
        systemd-sysusers.service | systemd-tmpfiles-setup.service) ;;
        *) ln -sf /dev/null "$etc/system/${path##*/}" ;;
        esac
    done
    mkdir "$etc/system/sysinit.target.wants"
    ln -s ../whole-proc.service "$etc/system/sysinit.target.wants/"
    cat >"$etc/system/whole-proc.service" <<'END'
[Unit]
DefaultDependencies=no
Before=systemd-sysusers.service systemd-journald.service dbus.service sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=umount /proc/sys
END
    : >"$root/etc/mind-bed"
}

if [ "$1" = init ]; then
    base=$2
    shift 2
    start "$@"
else
    base=$1
    shift
    hold "$@"
fi
