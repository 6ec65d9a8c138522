#!/usr/bin/env bash
# run.sh pack FOLDER      after a release build: what a machine with a GPU needs, without this tree, goes into FOLDER
# FOLDER/run.sh [OPTION]  there: measures with an empty kernel cache; the options are tilewright_bench_gpu's (--help)
# Results go to $OUT, else to the current folder: gpu.json, gpu.log.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1:-}" = pack ]; then
  build=$here/../../build/release
  mkdir -p "$2/lib"
  strip -o "$2/tilewright_bench_gpu" "$build/bench/tilewright_bench_gpu"
  cp "$here/run.sh" "$2/"
  # What is not part of every Linux machine that has a C++ compiler.
  for library in $(ldd "$build/bench/tilewright_bench_gpu" | awk '/libfmt|libgomp/ { print $3 }'); do
    cp -L "$library" "$2/lib/"
  done
  du -sh "$2"
  exit
fi

# NVRTC and cuBLAS: those of a Python that has them, else of a toolkit.
folders=$(python3 -c 'import nvidia.cu13 as n; print("\n".join(p + "/lib" for p in n.__path__))' 2>/dev/null || true)
for folder in $folders /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do
  [ -z "${TILEWRIGHT_NVRTC:-}" ] && [ -e "$folder/libnvrtc.so.13" ] && export TILEWRIGHT_NVRTC=$folder/libnvrtc.so.13
  [ -z "${cublas:-}" ] && [ -e "$folder/libcublasLt.so.13" ] && cublas=$folder
done
out=${OUT:-.}
TILEWRIGHT_CACHE_DIR=$(mktemp -d)
export TILEWRIGHT_CACHE_DIR
trap 'rm -rf "$TILEWRIGHT_CACHE_DIR"' EXIT
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
"$here/tilewright_bench_gpu" --json "$out/gpu.json" ${cublas:+--cublas "$cublas"} "$@" 2>&1 | tee "$out/gpu.log"
