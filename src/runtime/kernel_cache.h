// The kernel cache on disk: one immutable, checksummed file per entry, named by the hash of everything that went in. No
// locks: entries appear by rename, are verified when read, and are set aside when they do not verify.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/process.h"

namespace tilewright::runtime {

// Where a kernel that a call of build_... gave came from.
enum class KernelOrigin : uint8_t { Memory, Disk, Compiler };

struct CacheEntry {
  std::string metadata;
  std::string payload;
  bool operator==(const CacheEntry&) const = default;
};

// Bytes of a file that holds this entry under this key, and back. decode_entry() checks every length and the checksum,
// and that the key is the one asked for; empty if anything is wrong.
std::string encode_entry(std::string_view key, const CacheEntry& entry);
std::optional<CacheEntry> decode_entry(std::string_view file, std::string_view key);

// One thread's view of the cache; any number of them, in any number of processes, may use one directory.
class KernelCache {
 public:
  // The directory is made (mode 0700) when first written to. If it is a symbolic link, another user's, or writable by
  // others, the cache warns and does nothing. An empty name: does nothing, silently. Capacity is in bytes.
  KernelCache(std::string directory, int64_t capacity) : directory_(std::move(directory)), capacity_(capacity) {}

  // Of two caches of one directory the second says what is wrong with it.
  KernelCache& leave_words_to_another() {
    silent_ = true;
    return *this;
  }

  // $TILEWRIGHT_CACHE_DIR, else $XDG_CACHE_HOME/tilewright, else $HOME/.cache/tilewright; of TILEWRIGHT_CACHE_SIZE MiB,
  // else 512.
  static KernelCache from_environment();

  std::optional<CacheEntry> find(std::string_view key);
  // Never fails a compilation: what cannot be written is a warning. Makes room by removing what was not used for
  // longest.
  void store(std::string_view key, const CacheEntry& entry);

  const std::string& directory() const { return directory_; }
  static std::string file_name(std::string_view key);

 private:
  File open_directory(bool create);
  void set_aside(const File& directory, const std::string& name, const char* what);
  void make_room(const File& directory, int64_t incoming);

  std::string directory_;
  int64_t capacity_;
  bool refused_ = false;
  bool silent_ = false;  // about the directory: a damaged entry is said
};

}  // namespace tilewright::runtime
