// compile_cuda(): NVRTC behind the kernel cache.
#include <charconv>

#include "runtime/cuda_kernel.h"
#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr std::string_view kDoubtful = " doubtful";

// Everything the bytes of a kernel depend on.
std::string cache_key(const CudaKernelText& kernel, const Nvrtc& nvrtc) {
  return fmt::format("tilewright cuda kernel 2\nNVRTC {}\n{}\n{}\n{}\n{}", nvrtc.version(), kernel.arch,
                     fmt::join(device_options(), " "), fmt::join(kernel.more_options, " "), kernel.text);
}

// The metadata of a cache entry: milliseconds, a mark where the code is doubtful, a newline, the log as the compiler
// wrote it.
std::string metadata_of(const DeviceBinary& binary) {
  return fmt::format("{}{}\n{}", binary.milliseconds, binary.doubtful ? kDoubtful : "", binary.log.text);
}

DeviceBinary from_entry(CacheEntry entry) {
  DeviceBinary binary;
  const size_t line = std::min(entry.metadata.find('\n'), entry.metadata.size());
  std::from_chars(entry.metadata.data(), entry.metadata.data() + line, binary.milliseconds);
  binary.doubtful = std::string_view(entry.metadata).substr(0, line).ends_with(kDoubtful);
  binary.log = parse_device_log(entry.metadata.substr(std::min(line + 1, entry.metadata.size())));
  binary.cubin = std::move(entry.payload);
  return binary;
}

}  // namespace

DeviceBinary compile_cuda(const CudaKernelText& kernel, KernelOrigin* origin) {
  const Nvrtc& nvrtc = Nvrtc::get();
  const std::string key = cache_key(kernel, nvrtc);
  KernelCache cache = KernelCache::from_environment();
  std::optional<CacheEntry> entry = cache.find(key);
  if (origin) *origin = entry ? KernelOrigin::Disk : KernelOrigin::Compiler;
  if (entry) return from_entry(std::move(*entry));
  DeviceBinary binary = nvrtc.compile({kernel.name, kernel.text, kernel.arch, kernel.more_options, kernel.location});
  cache.store(key, {metadata_of(binary), binary.cubin});
  return binary;
}

}  // namespace tilewright::runtime::cuda
