#!/usr/bin/env bash
# Fuzzes the parsers and prints a summary by target.
#
#   FUZZ_SECONDS=60      seconds per target
#   FUZZ_TARGETS="…"     targets (default: all)
#   FUZZ_JOBS=N          number of parallel targets (default: one per processor)
#   FUZZ_SANITIZER=none  or address, which finds more in unsafe code at half the speed and needs a nightly toolchain
#   FUZZ_TOOLCHAIN=…     Rust toolchain (default: the current one, or nightly with a sanitizer)
#   FUZZ_DIR=…           directory for builds, new corpus entries, findings and logs (default: target/fuzz)
#
# Inputs are read from fuzz/corpus and fuzz/finds. New ones go to $FUZZ_DIR, so the repository is not changed.
# Exits with 1 if anything was found.
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

# Without a sanitizer, cargo-fuzz works with a stable toolchain.
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

# Keep temporary captures in memory if possible.
if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi

# Returns success if an input fails again on its own. A timeout on a busy machine does not count as a finding.
fails() {
    local target=$1 input=$2 status=0
    timeout 120 "$binaries/$target" -timeout=30 -rss_limit_mb=1024 "$input" >/dev/null 2>&1 || status=$?
    [ "$status" -ne 0 ]
}

# libFuzzer stops at a finding, so restart it until the time is over.
run() {
    local target=$1 until=$((SECONDS + seconds)) left longest=16384 entropic=1 index=0 input
    case $target in
        compressed | reassembly | security) longest=4096 ;;
        # Entropic scheduling costs more than it gains for these targets.
        pipeline | smb1_stream | smb2_stream | sealed_stream) entropic=0 ;;
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

# Adds up a target's logs of this run. After a finding there are no final figures, so use the last progress line.
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
