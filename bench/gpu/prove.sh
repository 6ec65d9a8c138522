#!/usr/bin/env bash
# From a folder that `run.sh pack` made, on a machine with a GPU; each in about three minutes on 16 cores:
#   prove.sh fuzz [A..B]   random programs, device against interpreter, bit for bit (seeds 1..2400)
#   prove.sh memcheck      every example at odd shapes under compute-sanitizer's memcheck
#   prove.sh compile       what compiling costs, and a launch
# Results go to $OUT, else to the current folder: fuzz.log, findings.tar.gz, memcheck.log, compile.json, compile.log.
# The status is 1 if anything was found.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/environment.sh"
out=${OUT:-.}
export PATH=$PATH:/usr/local/cuda/bin
cores=$(nproc)
export OMP_NUM_THREADS=1

fuzz() {
  local findings status=0
  findings=$(mktemp -d)
  timeout 175 "$here/tilewright" fuzz --engine cuda --seeds "${1:-1..2400}" --jobs "$cores" --out "$findings" |
    tee "$out/fuzz.log" || status=$?
  [ -z "$(ls "$findings")" ] || tar -C "$findings" -czf "$out/findings.tar.gz" .
  rm -rf "$findings"
  return "$status"
}

# One process an example: it compiles, runs and checks as always, and the sanitizer watches. Allocations are padded, so
# that an access beyond the end of one does not fall into the next.
memcheck_one() {
  local log=$1/memcheck_$2.log
  if timeout 170 compute-sanitizer --tool memcheck --padding 4096 --error-exitcode 9 --print-limit 5 \
    "$here/tilewright_bench_gpu" --filter "$2" --no-timed --no-gemm --no-copies > "$log" 2>&1; then
    echo "clean  $2"
  else
    echo "FOUND  $2 (status $?)"
    tail -n 40 "$log"
  fi
}

memcheck() {
  local logs
  logs=$(mktemp -d)
  export -f memcheck_one
  export here
  "$here/tilewright_bench_gpu" --list |
    xargs -P "$((cores / 2 > 0 ? cores / 2 : 1))" -I NAME bash -c 'memcheck_one "$0" NAME' "$logs" |
    tee "$out/memcheck.log"
  rm -rf "$logs"
  ! grep -q FOUND "$out/memcheck.log"
}

compile() {
  unset OMP_NUM_THREADS
  "$here/tilewright_bench_gpu" --compile --no-programs --no-gemm --json "$out/compile.json" | tee "$out/compile.log"
}

case ${1:-} in
fuzz | memcheck | compile) "$@" ;;
*)
  sed -n 2,7p "$0"
  exit 2
  ;;
esac
