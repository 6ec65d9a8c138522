#!/usr/bin/env bash
# run.sh pack FOLDER      after a release build: what a machine with a GPU needs, without this tree, goes into FOLDER
# FOLDER/run.sh [OPTION]  there: measures with an empty kernel cache; the options are tilewright_bench_gpu's (--help)
# FOLDER/prove.sh         there: fuzzing, memory checks, compile times (says how)
# Results go to $OUT, else to the current folder: gpu.json, gpu.log.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1:-}" = pack ]; then
  build=$here/../../build/release
  mkdir -p "$2/lib"
  cp "$here"/{run,prove,environment}.sh "$2/"
  for program in bench/tilewright_bench_gpu tilewright; do
    strip -o "$2/${program##*/}" "$build/$program"
    # What is not part of every Linux machine that has a C++ compiler.
    for library in $(ldd "$build/$program" | awk '/libfmt|libgomp/ { print $3 }'); do
      cp -L "$library" "$2/lib/"
    done
  done
  du -sh "$2"
  exit
fi

source "$here/environment.sh"
out=${OUT:-.}
"$here/tilewright_bench_gpu" --json "$out/gpu.json" ${cublas:+--cublas "$cublas"} "$@" 2>&1 | tee "$out/gpu.log"
