#!/usr/bin/env bash
# Fuzzes the parsers, target by target, and prints what came of it.
#
#   FUZZ_SECONDS=60      time for each target
#   FUZZ_TARGETS="…"     which ones; all otherwise
#   FUZZ_JOBS=N          how many at once; as many as there are processors otherwise
#   FUZZ_SANITIZER=none  or address, which finds more in unsafe code, at half the speed; it needs a nightly toolchain
#   FUZZ_TOOLCHAIN=…     which Rust to build with: the one in use otherwise (nightly with a sanitizer)
#   FUZZ_DIR=…           where builds, grown corpora, finds and logs go; target/fuzz otherwise
#
# Inputs are read from fuzz/corpus and fuzz/finds; what is new goes to $FUZZ_DIR, so that the repository stays as it is.
# Exits with 1 when anything was found.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
sanitizer=${FUZZ_SANITIZER:-none}
jobs=${FUZZ_JOBS:-$(nproc)}
directory=${FUZZ_DIR:-${CARGO_TARGET_DIR:-target}/fuzz}
mapfile -t known < <(sed -n 's/^name = "\([a-z0-9_]*\)"$/\1/p' fuzz/Cargo.toml)
read -ra targets <<<"${FUZZ_TARGETS:-${known[*]}}"
for target in "${targets[@]}"; do
    [ -f "fuzz/fuzz_targets/$target.rs" ] || {
        echo "fuzz: no target $target; there are: ${known[*]}" >&2
        exit 2
    }
done

# Without a sanitizer cargo-fuzz is content with a stable toolchain.
toolchain=()
if [ -n "${FUZZ_TOOLCHAIN:-}" ]; then
    toolchain=("+$FUZZ_TOOLCHAIN")
elif [ "$sanitizer" != none ]; then
    toolchain=(+nightly)
fi

export PATH="$PWD/.cache/tools/bin:$PATH"
if ! command -v cargo-fuzz >/dev/null; then
    echo "fuzz: installing cargo-fuzz into .cache/tools"
    cargo install --quiet --locked --root .cache/tools cargo-fuzz@0.13.2
fi

mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
logs=$directory/logs
mkdir -p "$logs"
echo "fuzz: building ($(rustc "${toolchain[@]}" --version), sanitizer: $sanitizer)"
cargo "${toolchain[@]}" fuzz build --sanitizer "$sanitizer" --fuzz-dir fuzz --target-dir "$directory/build"
host=$(rustc "${toolchain[@]}" -vV | sed -n 's/^host: //p')
binaries=$directory/build/$host/release

# Temporary captures in memory, where there is such a directory.
if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi

# Whether an input fails again by itself. A time limit that was passed because the machine was busy is no find.
fails() {
    local target=$1 input=$2 status=0
    timeout 120 "$binaries/$target" -timeout=30 -rss_limit_mb=1024 "$input" >/dev/null 2>&1 || status=$?
    [ "$status" -ne 0 ]
}

# A find ends libFuzzer; it is started again until the time is over.
run() {
    local target=$1 until=$((SECONDS + seconds)) left longest=16384 entropic=1 index=0 input
    case $target in
        compressed | reassembly | security) longest=4096 ;;
        # Weighing rare features costs more than these targets take themselves.
        pipeline | smb1_stream | smb2_stream) entropic=0 ;;
    esac
    local finds=$directory/finds/$target
    mkdir -p "$directory/corpus/$target" "$finds" "$directory/unreproduced"
    local inputs=("$directory/corpus/$target" "fuzz/corpus/$target")
    if [ -d "fuzz/finds/$target" ]; then inputs+=("fuzz/finds/$target"); fi
    while left=$((until - SECONDS)) && [ "$left" -gt 0 ] && [ "$index" -lt 50 ]; do
        index=$((index + 1))
        nice -n 19 "$binaries/$target" -max_total_time="$left" -timeout=10 -rss_limit_mb=1024 -max_len="$longest" \
            -entropic="$entropic" -print_final_stats=1 -artifact_prefix="$finds/" "${inputs[@]}" \
            >"$logs/$target.$started.$index.log" 2>&1 || true
        for input in "$finds"/*; do
            if [ -f "$input" ] && ! fails "$target" "$input"; then mv "$input" "$directory/unreproduced/"; fi
        done
    done
}

started=$(date +%Y%m%d-%H%M%S)
echo "fuzz: $seconds s for each of ${#targets[@]} targets, $jobs at once; logs in $logs"
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    run "$target" &
done
wait

# The totals of a target's logs of this run. Without final figures, as after a find, the last line of progress has them.
total_finds=0
idle=()
printf '\n%-14s %14s %10s %9s %9s %7s\n' target executions exec/s coverage features finds
for target in "${targets[@]}"; do
    figures=$(awk '
        FNR == 1 { executions += last; last = 0 }
        /^#[0-9]+/ {
            last = substr($1, 2) + 0
            for (i = 2; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1) }
        }
        /^stat::number_of_executed_units:/ { last = $2 }
        END { printf "%d %d %d\n", executions + last, cov, ft }' "$logs/$target.$started."*.log)
    read -r executions coverage features <<<"$figures"
    finds=$(find "$directory/finds/$target" -type f | wc -l)
    total_finds=$((total_finds + finds))
    if [ "$executions" -eq 0 ]; then idle+=("$target"); fi
    printf '%-14s %14d %10d %9d %9d %7d\n' "$target" "$executions" $((executions / seconds)) "$coverage" "$features" "$finds"
done
if [ ${#idle[@]} -gt 0 ]; then
    printf '\nfuzz: not a single input was run of: %s; see %s\n' "${idle[*]}" "$logs"
    exit 1
fi
if [ "$total_finds" -gt 0 ]; then
    printf '\nfuzz: finds (those of earlier runs included) lie in %s\n' "$directory/finds"
    exit 1
fi
printf '\nfuzz: nothing found\n'
