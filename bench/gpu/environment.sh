# Sourced by the scripts of a packed folder ($here): where the device compiler and cuBLAS are, and an empty kernel
# cache. NVRTC and cuBLAS are those of a Python that has them, else of a toolkit.
folders=$(python3 -c 'import nvidia.cu13 as n; print("\n".join(p + "/lib" for p in n.__path__))' 2>/dev/null || true)
for folder in $folders /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do
  [ -z "${TILEWRIGHT_NVRTC:-}" ] && [ -e "$folder/libnvrtc.so.13" ] && export TILEWRIGHT_NVRTC=$folder/libnvrtc.so.13
  [ -z "${cublas:-}" ] && [ -e "$folder/libcublasLt.so.13" ] && cublas=$folder
done
TILEWRIGHT_CACHE_DIR=$(mktemp -d)
export TILEWRIGHT_CACHE_DIR
trap 'rm -rf "$TILEWRIGHT_CACHE_DIR"' EXIT
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
