# shellcheck shell=sh disable=SC2034,SC2154 # set or used by common.sh and the tests
# What the tests of killed runs share. Two slow rows of small problems: nothing here depends on a time.

program=$1
out=$scratch/result.json
journal=$out.journal
# A run of so many launches ends only when it is stopped.
endless='--launches 1000 --benchmark_min_time 0.002'
selection='--kernel softmax_f32_scalar_libm,qk_f32_scalar_dot --op softmax,qk --batch 1 --heads 2 --kv-heads 2
           --head-dim 16 --seq 16 --mask none --threads 1 --budget 100000'

# start OPTION...: runs in the background; $pid.
start() {
    # shellcheck disable=SC2086 # lists of words
    "$program" run $selection --out "$out" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
    pid=$!
}

# resume OPTION...: as run() in common.sh.
resume() {
    # shellcheck disable=SC2086 # lists of words
    run "$program" run $selection --out "$out" --resume "$@"
}

# ended: waits for the background run; $status.
ended() {
    status=0
    wait "$pid" || status=$?
}

# await WHAT COMMAND...: tries until the command succeeds.
await() {
    what=$1
    shift
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        if [ "$tries" -gt 1200 ] || { [ -n "$pid" ] && [ ! -d "/proc/$pid" ]; }; then
            show out
            show err
            fail "in vain: $what"
        fi
        sleep 0.1
    done
}

# journal_has EVENT COUNT: at least so many complete events.
journal_has() {
    [ "$(grep -c "^{\"event\":\"$1\".*}\$" "$journal")" -ge "$2" ]
}

# The worker of the background run: its only child.
has_worker() {
    worker=$(sed -n "s/^\\([0-9]*\\) (.*) [A-Z] $pid .*/\\1/p" /proc/[0-9]*/stat 2>/dev/null | head -n 1)
    [ -n "$worker" ]
}

# The program takes SIGINT itself by now. Until then it ignores it, as what a shell starts in the background does, and
# its first worker, which lists the kernels, is no sign that it does not.
catches_interrupt() {
    grep -q '^SigCgt:.*[2367abef]$' "/proc/$pid/status"
}

names() {
    grep '^ *"name": ".*/f32/' "$1" | sort
}

# launches FILE: how many launches' samples the file has, over all rows.
launches() {
    sed -n '/"samples_ns": \[/,/\]$/p' "$1" | grep -c '^ *\[[0-9]'
}

expect_passed() {
    [ "$(grep -c '"verdict": "PASSED"' "$out")" = "$1" ] || {
        grep '"verdict"\|"reason"' "$out" >&2
        fail "$1 rows should have PASSED"
    }
}
