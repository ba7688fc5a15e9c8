#!/usr/bin/env bash
# Recreates the two demo captures of tests/data: a NetBench-like mix over SMB1 and an office mix over SMB 3.1.1.
#
#   sudo scripts/make_demo_captures.sh [OUTPUT_DIRECTORY]
#
# The Samba server and its clients run in separate network namespaces with a scratch directory. No accounts or settings
# of the machine are changed, and everything is removed at the end.
# Needs root and: samba, samba-testsuite, smbclient, tcpdump, ethtool, iproute2, zstd, python3-venv.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../tests/data}
mkdir -p "$out"
out=$(cd "$out" && pwd)

missing=()
for tool in smbd pdbedit smbtorture smbclient tcpdump ethtool ip zstd python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "make_demo_captures: missing: ${missing[*]} (Debian: apt-get install samba samba-testsuite smbclient tcpdump ethtool iproute2 zstd)" >&2
    exit 1
fi
[ "$(id -u)" = 0 ] || { echo "make_demo_captures: needs root, for network namespaces" >&2; exit 1; }

work=$(mktemp -d)
tag=ssc$$
server=$tag-s
clients=(1 2 3 4)
pids=()

cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    if [ -f "$work/smbd.pid" ]; then kill "$(cat "$work/smbd.pid")" 2>/dev/null || true; fi
    wait 2>/dev/null || true
    for namespace in "$server" $(for i in "${clients[@]}"; do echo "$tag-c$i"; done); do
        # Only processes in our own namespaces.
        for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
        ip netns del "$namespace" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# --- Network: a bridge in the server's namespace, one namespace per client, segments of at most 1,500 bytes.
ip netns add "$server"
ip -n "$server" link set lo up
ip -n "$server" link add br0 type bridge
ip -n "$server" addr add 10.99.0.1/24 dev br0
ip -n "$server" link set br0 up
for i in "${clients[@]}"; do
    ip netns add "$tag-c$i"
    ip -n "$tag-c$i" link set lo up
    ip link add "p$i" netns "$server" type veth peer name eth0 netns "$tag-c$i"
    ip -n "$server" link set "p$i" master br0 up
    ip -n "$tag-c$i" addr add "10.99.0.1$i/24" dev eth0
    ip -n "$tag-c$i" link set eth0 up
    ip netns exec "$server" ethtool -K "p$i" tso off gso off gro off >/dev/null
    ip netns exec "$tag-c$i" ethtool -K eth0 tso off gso off gro off >/dev/null
done
ip netns exec "$server" ethtool -K br0 tso off gso off gro off >/dev/null

# --- Server: a private Samba. NTLM users are mapped to an existing unprivileged account; no account is created.
mkdir -p "$work"/{private,lock,state,cache,pid,log,ncalrpc,share}
chmod 755 "$work"
cat >"$work/smb.conf" <<CONF
[global]
    workgroup = LAB
    server role = standalone server
    netbios name = FILES1
    interfaces = 10.99.0.1/24
    bind interfaces only = yes
    smb ports = 445
    disable netbios = yes
    load printers = no
    printing = bsd
    printcap name = /dev/null
    disable spoolss = yes
    private dir = $work/private
    lock directory = $work/lock
    state directory = $work/state
    cache directory = $work/cache
    pid directory = $work/pid
    ncalrpc dir = $work/ncalrpc
    usershare path =
    log file = $work/log/log.%m
    log level = 0
    passdb backend = tdbsam:$work/private/passdb.tdb
    server min protocol = NT1
    server max protocol = SMB3_11
    client min protocol = NT1
    ntlm auth = ntlmv1-permitted
    username map = $work/username.map
    map to guest = Bad User
    guest account = nobody
    server signing = auto
    smb2 leases = yes
    kernel oplocks = no
[office]
    path = $work/share
    read only = no
    guest ok = yes
    force user = root
CONF
echo 'daemon = alice bob carol dave netbench' >"$work/username.map"
export SMB_PASSWORD=demo-only
printf '%s\n%s\n' "$SMB_PASSWORD" "$SMB_PASSWORD" | pdbedit -s "$work/smb.conf" -a -t -u daemon >/dev/null
ip netns exec "$server" setsid smbd -F --no-process-group -s "$work/smb.conf" </dev/null >"$work/smbd.out" 2>&1 &
pids+=($!)
for _ in $(seq 50); do
    [ -s "$work/pid/smbd.pid" ] && break
    sleep 0.1
done
cp "$work/pid/smbd.pid" "$work/smbd.pid"

capture_start() { # NAME INTERFACE
    ip netns exec "$server" tcpdump -q -i "$2" -s 0 -B 65536 -Z root -w "$work/$1.pcap" 'tcp port 445' 2>"$work/$1.tcpdump" &
    tcpdump_pid=$!
    pids+=("$tcpdump_pid")
    for _ in $(seq 50); do
        grep -q 'listening on' "$work/$1.tcpdump" && break
        sleep 0.1
    done
}
capture_stop() { # NAME
    sleep 0.5
    kill -INT "$tcpdump_pid"
    wait "$tcpdump_pid" || true
    grep -E 'packets (captured|dropped)' "$work/$1.tcpdump"
    grep -q '^0 packets dropped by kernel' "$work/$1.tcpdump" || { echo "the capture lost packets; run again" >&2; exit 1; }
    zstd -q -19 --long=24 -f "$work/$1.pcap" -o "$out/$1.pcap.zst"
    ls -l "$out/$1.pcap.zst"
}

# --- Office mix over SMB 3.1.1: four users on a 100 Mbit/s line.
echo "== office mix over SMB 3.1.1"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q -r "$here/requirements-demo.txt"
office() { # CLIENT USER ROLE [ARGUMENTS]
    local client=$1 user=$2 role=$3
    shift 3
    ip netns exec "$tag-c$client" "$work/venv/bin/python" "$here/office_mix.py" \
        --server 10.99.0.1 --user "$user" --role "$role" "$@"
}
office 1 alice prepare
ip netns exec "$server" tc qdisc add dev br0 root handle 1: noqueue 2>/dev/null || true
for i in "${clients[@]}"; do
    ip netns exec "$tag-c$i" tc qdisc add dev eth0 root tbf rate 100mbit burst 32kbit latency 50ms
    ip netns exec "$server" tc qdisc add dev "p$i" root tbf rate 100mbit burst 32kbit latency 50ms
done
capture_start demo-smb311-office br0
office 1 alice author --seed 1 --duration 15 & w1=$!
office 2 bob clerk --seed 2 --duration 15 & w2=$!
office 3 carol browser --seed 3 --duration 15 & w3=$!
seq -f 'Minutes of meeting %.0f: nothing decided.' 3500 >"$work/minutes.txt"
for _ in 1 2 3; do
    ip netns exec "$tag-c4" smbclient //10.99.0.1/office "$SMB_PASSWORD" -s "$work/smb.conf" -U dave -m SMB3_11 \
        --client-protection=off \
        -c "ls; cd reports; ls; put $work/minutes.txt minutes.txt; get minutes.txt $work/minutes.back; rename minutes.txt minutes.old; ls; del minutes.old; allinfo autumn" >/dev/null 2>&1
    sleep 3
done
wait $w1 $w2 $w3
capture_stop demo-smb311-office
for i in "${clients[@]}"; do
    ip netns exec "$tag-c$i" tc qdisc del dev eth0 root
    ip netns exec "$server" tc qdisc del dev "p$i" root
done

# --- NetBench-like mix over SMB1: eight clients on one machine.
echo "== NetBench-like mix over SMB1"
python3 "$here/make_loadfile.py" --seed 1 --scale "${NETBENCH_SCALE:-32}" --operations "${NETBENCH_OPERATIONS:-1200}" \
    -o "$work/netbench-like.txt"
capture_start demo-smb1-netbench br0
ip netns exec "$tag-c1" smbtorture //10.99.0.1/office -s "$work/smb.conf" -U "netbench%$SMB_PASSWORD" -m NT1 \
    --option='client min protocol=NT1' --option='client signing=disabled' \
    bench.nbench --loadfile="$work/netbench-like.txt" --num-progs=8 --timelimit="${NETBENCH_SECONDS:-3}" \
    --option=torture:targetrate="${NETBENCH_RATE:-1}" >"$work/nbench.out" 2>&1 || { tail -20 "$work/nbench.out" >&2; exit 1; }
tail -3 "$work/nbench.out"
grep -iE 'fail|wrong|error' "$work/nbench.out" | sort | uniq -c | sort -rn | head -5 || true
capture_stop demo-smb1-netbench
