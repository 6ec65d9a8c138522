#include "runtime/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "runtime/sha256.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::runtime {
namespace {

constexpr int64_t kDefaultCapacity = 512ll << 20;
constexpr int64_t kLargestEntry = 256ll << 20;  // what a damaged length may make us read
constexpr std::string_view kEnding = ".kernel", kTemporary = ".writing", kAside = ".damaged";
constexpr int64_t kAbandonedAfter = 3600;  // seconds until a temporary file's writer must be dead

// A file is: header, key, metadata, payload, SHA-256 of all before it. Numbers are little-endian, as is every machine
// we run on.
struct Header {
  char magic[8] = {'T', 'W', 'K', 'E', 'R', 'N', 'E', 'L'};
  uint64_t version = 1;
  uint64_t key_bytes = 0;
  uint64_t metadata_bytes = 0;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Header) == 40);

std::string_view as_bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool is_private(const struct stat& info) { return info.st_uid == geteuid() && (info.st_mode & 022) == 0; }

// Parents are made private too: the XDG base directory specification asks for 0700.
void make_directories(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), 0700);
  mkdir(path.c_str(), 0700);
}

std::string reason_against(const File& directory) {
  if (!directory && (errno == ELOOP || errno == ENOTDIR)) return "is a symbolic link or no directory";
  struct stat info;
  if (!directory || fstat(directory.get(), &info) != 0)
    return fmt::format("cannot be made or read ({})", std::strerror(errno));
  if (info.st_uid != geteuid()) return "belongs to another user";
  return (info.st_mode & 022) != 0 ? "can be written by others" : "";
}

std::optional<std::string> read_file(const File& file, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    filled += static_cast<size_t>(count);
  }
  return bytes;
}

std::string temporary_name() {
  static std::atomic<int> counter = 0;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}-{}-{}{}", getpid(), counter++, now.tv_nsec, kTemporary);
}

struct Listed {
  std::string name;
  int64_t bytes;
  timespec used;
};

std::vector<Listed> list(const File& directory) {
  std::vector<Listed> files;
  DIR* stream = fdopendir(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!stream) return files;
  while (const dirent* entry = readdir(stream)) {
    struct stat info;
    if (fstatat(directory.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(info.st_mode))
      files.push_back({entry->d_name, info.st_size, info.st_mtim});
  }
  closedir(stream);
  return files;
}

int64_t capacity_from_environment() {
  const char* text = secure_getenv("TILEWRIGHT_CACHE_SIZE");
  if (!text || !*text) return kDefaultCapacity;
  int64_t mebibytes = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, mebibytes);
  if (error != std::errc() || stop != end || mebibytes < 0 || mebibytes > int64_t{1} << 40)
    fail(Code::SettingInvalid, {}, fmt::format("TILEWRIGHT_CACHE_SIZE is '{}', which is no number of MiB", text));
  return mebibytes << 20;
}

}  // namespace

std::string encode_entry(std::string_view key, const CacheEntry& entry) {
  Header header;
  header.key_bytes = key.size();
  header.metadata_bytes = entry.metadata.size();
  header.payload_bytes = entry.payload.size();
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(key).append(entry.metadata).append(entry.payload);
  return file.append(as_bytes(sha256(file)));
}

std::optional<CacheEntry> decode_entry(std::string_view file, std::string_view key) {
  constexpr size_t fixed = sizeof(Header) + sizeof(Digest);
  if (file.size() < fixed) return std::nullopt;
  const std::string_view body = file.substr(0, file.size() - sizeof(Digest));
  if (file.substr(body.size()) != as_bytes(sha256(body))) return std::nullopt;
  Header header;
  const Header ours;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, ours.magic, sizeof ours.magic) != 0 || header.version != ours.version)
    return std::nullopt;
  size_t left = body.size() - sizeof header;
  for (uint64_t bytes : {header.key_bytes, header.metadata_bytes, header.payload_bytes}) {
    if (bytes > left) return std::nullopt;
    left -= bytes;
  }
  if (left != 0 || body.substr(sizeof header, header.key_bytes) != key) return std::nullopt;
  const size_t metadata = sizeof header + header.key_bytes;
  return CacheEntry{std::string(body.substr(metadata, header.metadata_bytes)),
                    std::string(body.substr(metadata + header.metadata_bytes))};
}

KernelCache KernelCache::from_environment() {
  std::string directory;
  if (const char* own = secure_getenv("TILEWRIGHT_CACHE_DIR"); own && *own)
    directory = own;
  else if (const char* cache = secure_getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    directory = std::string(cache) + "/tilewright";
  else if (const char* home = secure_getenv("HOME"); home && *home == '/')
    directory = std::string(home) + "/.cache/tilewright";
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();  // "link/" would follow the link
  return KernelCache(std::move(directory), capacity_from_environment());
}

std::string KernelCache::file_name(std::string_view key) { return hex(sha256(key)).append(kEnding); }

File KernelCache::open_directory(bool create) {
  if (directory_.empty() || refused_) return File();
  const auto open_it = [&] { return File(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); };
  File directory = open_it();
  if (!directory && errno == ENOENT) {
    if (!create) return directory;
    make_directories(directory_);
    directory = open_it();
  }
  const std::string reason = reason_against(directory);
  if (reason.empty()) return directory;
  refused_ = true;
  if (silent_) return File();
  warn(make_diagnostic(Code::CacheDirectoryRefused, {},
                       fmt::format("the kernel cache {} {}: kernels are compiled anew", directory_, reason),
                       "make it a directory of your own with mode 0700, or set TILEWRIGHT_CACHE_DIR"));
  return File();
}

void KernelCache::set_aside(const File& directory, const std::string& name, const char* what) {
  const std::string aside = name + std::string(kAside);
  if (renameat(directory.get(), name.c_str(), directory.get(), aside.c_str()) != 0)
    unlinkat(directory.get(), name.c_str(), 0);
  warn(make_diagnostic(Code::CacheEntryDamaged, {},
                       fmt::format("the kernel cache entry {}/{} {}: compiled anew", directory_, name, what),
                       fmt::format("it was renamed to {}", aside)));
}

std::optional<CacheEntry> KernelCache::find(std::string_view key) {
  const File directory = open_directory(false);
  if (!directory) return std::nullopt;
  const std::string name = file_name(key);
  // O_NONBLOCK: a fifo in its place must not stop us.
  const File file(openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ELOOP) set_aside(directory, name, "is a symbolic link");
    return std::nullopt;
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !is_private(info)) {
    set_aside(directory, name, "is no private file of this user");
    return std::nullopt;
  }
  const std::optional<std::string> bytes = info.st_size <= kLargestEntry ? read_file(file, info.st_size) : std::nullopt;
  std::optional<CacheEntry> entry = bytes ? decode_entry(*bytes, key) : std::nullopt;
  if (!entry) set_aside(directory, name, "is damaged");
  // The modification time is the time of last use.
  if (entry) futimens(file.get(), nullptr);
  return entry;
}

void KernelCache::store(std::string_view key, const CacheEntry& entry) {
  const File directory = open_directory(true);
  if (!directory) return;
  const std::string bytes = encode_entry(key, entry);
  if (static_cast<int64_t>(bytes.size()) > std::min(capacity_, kLargestEntry)) return;
  make_room(directory, static_cast<int64_t>(bytes.size()));
  const std::string temporary = temporary_name(), name = file_name(key);
  const File file(
      openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  // No fsync: what a crash of the machine tears is found by the checksum.
  if (file && file.write_all(bytes) && renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str()) == 0)
    return;
  if (!silent_)
    warn(make_diagnostic(Code::CacheNotWritable, {},
                         fmt::format("the kernel cache {} cannot be written: {}", directory_, std::strerror(errno))));
  if (file) unlinkat(directory.get(), temporary.c_str(), 0);
}

void KernelCache::make_room(const File& directory, int64_t incoming) {
  std::vector<Listed> files = list(directory);
  const int64_t now = std::time(nullptr);
  int64_t total = incoming;
  std::erase_if(files, [&](const Listed& file) {
    if (!file.name.ends_with(kTemporary)) return !file.name.ends_with(kEnding) && !file.name.ends_with(kAside);
    if (now - file.used.tv_sec > kAbandonedAfter) unlinkat(directory.get(), file.name.c_str(), 0);
    return true;
  });
  for (const Listed& file : files) total += file.bytes;
  if (total <= capacity_) return;
  std::sort(files.begin(), files.end(), [](const Listed& a, const Listed& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
  });
  // To seven eighths, so that a full cache is not sorted at every store.
  for (size_t i = 0; i < files.size() && total > capacity_ - capacity_ / 8; ++i) {
    unlinkat(directory.get(), files[i].name.c_str(), 0);
    total -= files[i].bytes;
  }
}

}  // namespace tilewright::runtime
