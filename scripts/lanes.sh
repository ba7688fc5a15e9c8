#!/usr/bin/env bash
# Runs targets of make in two lanes at the same time, then others alone, and prints the duration of each.
#
#   scripts/lanes.sh [--log DIR] TARGET ... --background TARGET ... --alone TARGET ...
#
# Each lane runs its targets in order. The background has a low priority: it gets the processor time that the first lane
# leaves while it waits, and hardly slows down tests with time limits. Its output goes to DIR and is printed as soon as a
# target of the first lane ends. After a failure no further target starts, and the output of the failed target comes
# last.
set -euo pipefail

say() { echo "lanes: $*"; }

logs='' first=() background=() alone=() lane=first
while [ $# -gt 0 ]; do
    case $1 in
        --log) logs=$2 && shift ;;
        --background | --alone) lane=${1#--} ;;
        *) declare -n targets=$lane && targets+=("$1") ;;
    esac
    shift
done
[ -n "$logs" ] || logs=$(mktemp -d)
rm -rf "$logs"
mkdir -p "$logs"
make=${MAKE:-make}
durations=()

run() { "$make" --no-print-directory "$1"; }

# Writes DIR/TARGET.log, and DIR/TARGET.done with the exit status and the seconds.
run_background() {
    local target status began
    renice -n 10 "$BASHPID" >/dev/null
    for target in "${background[@]}"; do
        began=$SECONDS status=0
        run "$target" >"$logs/$target.log" 2>&1 || status=$?
        echo "$status $((SECONDS - began))" >"$logs/$target.new"
        mv "$logs/$target.new" "$logs/$target.done"
        [ "$status" = 0 ] || return "$status"
    done
}

# Prints the output of the targets that the background has finished. Returns the status of the last.
printed=0
print_finished() {
    local target status seconds
    while [ "$printed" -lt ${#background[@]} ] && [ -e "$logs/${background[printed]}.done" ]; do
        target=${background[printed]}
        read -r status seconds <"$logs/$target.done"
        say "output of $target, which took $seconds s in the background:"
        cat "$logs/$target.log"
        durations+=("$seconds $target (background)")
        printed=$((printed + 1))
        if [ "$status" != 0 ]; then
            say "$target failed with status $status" >&2
            exit "$status"
        fi
    done
}

in_turn() {
    local target began
    for target in "$@"; do
        began=$SECONDS
        say "$target"
        run "$target"
        durations+=("$((SECONDS - began)) $target")
        print_finished
    done
}

# A process group of its own, so that all its processes end with it.
set -m
run_background </dev/null &
background_id=$!
set +m
trap 'kill -- -"$background_id" 2>/dev/null || true' EXIT

in_turn "${first[@]}"
say "waiting for the background"
wait "$background_id" || true
print_finished
if [ "$printed" -lt ${#background[@]} ]; then
    cat "$logs/${background[printed]}.log" >&2 || true
    say "${background[printed]} was killed" >&2
    exit 1
fi
in_turn "${alone[@]}"

say "seconds of each target:"
printf '%s\n' "${durations[@]}" | sort -rn | sed 's/^/    /'
