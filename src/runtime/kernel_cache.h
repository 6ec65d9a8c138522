// The kernel cache on disk: one immutable, checksummed file per entry, named by the hash of everything that went in. No
// locks: entries appear by rename, are verified when read, and are set aside when they do not verify.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::runtime {

struct CacheEntry {
  std::string metadata;
  std::string payload;
  bool operator==(const CacheEntry&) const = default;
};

// Bytes of a file that holds this entry under this key, and back. decode() checks every length and the checksum, and
// that the key is the one asked for; empty if anything is wrong.
std::string encode_entry(std::string_view key, const CacheEntry& entry);
std::optional<CacheEntry> decode_entry(std::string_view file, std::string_view key);

class KernelCache {
 public:
  static constexpr int64_t default_capacity = 512ll << 20;  // bytes; TILEWRIGHT_CACHE_SIZE (in MiB) overrides

  // The directory is made (mode 0700) when first needed. If it is a symbolic link, another user's, or writable by
  // others, the cache warns once and does nothing. An empty directory: does nothing, silently.
  KernelCache(std::string directory, int64_t capacity);

  // $TILEWRIGHT_CACHE_DIR, else $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright; empty if none of these is set.
  static std::string default_directory();
  // The process' cache; follows the environment variables above.
  static KernelCache from_environment();

  std::optional<CacheEntry> find(std::string_view key);
  // Never fails a compile: what cannot be written is a warning.
  void store(std::string_view key, const CacheEntry& entry);
  const std::string& directory() const { return directory_; }

 private:
  int open_directory(bool create);
  void quarantine(int directory, const std::string& name, const char* what);
  void evict(int directory, int64_t incoming);

  std::string directory_;
  int64_t capacity_;
};

}  // namespace tilewright::runtime
