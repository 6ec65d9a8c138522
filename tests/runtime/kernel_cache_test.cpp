#include "runtime/kernel_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/cpu_kernel.h"
#include "runtime/plans.h"
#include "runtime/scratch.h"
#include "runtime/sha256.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMebibyte = 1 << 20;

const std::string key = "the key: everything that went in";
const CacheEntry entry{"metadata", std::string(3000, 'p') + std::string("\0\xff", 2)};

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Stored {
  Stored() : cache(scratch / "cache", kMebibyte), file(cache.directory() + "/" + KernelCache::file_name(key)) {
    cache.store(key, entry);
  }
  Scratch scratch;
  KernelCache cache;
  std::string file;
  CaughtWarnings warnings;
};

TEST(Sha256,
     KnownAnswers) {  // FIPS 180-4 examples, and lengths around the padding's edges against a property: all differ
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  std::set<std::string> seen;
  for (size_t n = 0; n < 200; ++n) EXPECT_TRUE(seen.insert(hex(sha256(std::string(n, 'x')))).second) << n;
}

TEST(KernelCache, StoresPrivatelyAndFinds) {
  Stored s;
  EXPECT_EQ(s.cache.find(key), entry);
  EXPECT_EQ(s.cache.find("another key"), std::nullopt);
  struct stat info;
  ASSERT_EQ(stat(s.cache.directory().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(s.file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(s.warnings.found.empty());
}

TEST(KernelCache, EveryTruncationIsFound) {
  const std::string file = encode_entry(key, entry);
  ASSERT_EQ(decode_entry(file, key), entry);
  EXPECT_EQ(decode_entry(file, key + "!"), std::nullopt);
  for (size_t n = 0; n < file.size(); ++n) ASSERT_EQ(decode_entry(file.substr(0, n), key), std::nullopt) << n;
  EXPECT_EQ(decode_entry(file + '\0', key), std::nullopt);
}

TEST(KernelCache, LengthsThatLieAreFoundThoughTheChecksumFits) {
  const std::string file = encode_entry(key, entry);
  for (size_t field = 16; field < 40; field += 8)
    for (uint64_t lie : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}, uint64_t{file.size()}}) {
      std::string body = file.substr(0, file.size() - 32);
      std::memcpy(body.data() + field, &lie, 8);
      const Digest digest = sha256(body);
      body.append(reinterpret_cast<const char*>(digest.data()), digest.size());
      EXPECT_EQ(decode_entry(body, key), std::nullopt) << field << " " << lie;
    }
}

TEST(KernelCache, AFlippedBitInEvery64thByteIsSetAsideWithOneWarning) {
  Stored s;
  const std::string good = read_all(s.file);
  int damaged = 0;
  for (size_t at = 0; at < good.size(); at += 64) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at / 64 % 8)));
    write_all(s.file, bad);
    chmod(s.file.c_str(), 0600);
    ASSERT_EQ(s.cache.find(key), std::nullopt) << at;
    EXPECT_FALSE(fs::exists(s.file));
    EXPECT_TRUE(fs::exists(s.file + ".damaged"));
    EXPECT_EQ(s.warnings.count(Code::CacheEntryDamaged), ++damaged);
    s.cache.store(key, entry);
    ASSERT_EQ(s.cache.find(key), entry);
  }
  EXPECT_EQ(s.warnings.found[0].message, fmt::format("the kernel cache entry {} is damaged: compiled anew", s.file));
}

TEST(KernelCache, TruncatedAndEmptyFilesAreSetAside) {
  Stored s;
  for (off_t size : {0, 1, 39, 100, 3100}) {
    ASSERT_EQ(truncate(s.file.c_str(), size), 0);
    EXPECT_EQ(s.cache.find(key), std::nullopt);
    s.cache.store(key, entry);
  }
  EXPECT_EQ(s.warnings.count(Code::CacheEntryDamaged), 5);
  EXPECT_EQ(s.cache.find(key), entry);
}

TEST(KernelCache, AnotherKeysFileUnderThisNameIsNotBelieved) {
  Stored s;
  write_all(s.file, encode_entry("another key", entry));
  EXPECT_EQ(s.cache.find(key), std::nullopt);
  EXPECT_EQ(s.warnings.count(Code::CacheEntryDamaged), 1);
}

TEST(KernelCache, LinkedSharedAndOddEntriesAreSetAside) {
  Stored s;
  const std::string elsewhere = s.scratch / "elsewhere";
  fs::rename(s.file, elsewhere);
  fs::create_symlink(elsewhere, s.file);
  EXPECT_EQ(s.cache.find(key), std::nullopt);
  EXPECT_EQ(s.warnings.found.back().message,
            fmt::format("the kernel cache entry {} is a symbolic link: compiled anew", s.file));
  EXPECT_TRUE(fs::exists(elsewhere));
  const auto expect_set_aside = [&](const char* what) {
    const size_t before = s.warnings.found.size();
    EXPECT_EQ(s.cache.find(key), std::nullopt) << what;
    ASSERT_EQ(s.warnings.found.size(), before + 1) << what;
    EXPECT_EQ(s.warnings.found.back().message,
              fmt::format("the kernel cache entry {} is no private file of this user: compiled anew", s.file));
    EXPECT_FALSE(fs::exists(s.file));
  };
  s.cache.store(key, entry);
  chmod(s.file.c_str(), 0620);
  expect_set_aside("group may write");
  ASSERT_EQ(mkfifo(s.file.c_str(), 0600), 0);
  expect_set_aside("fifo");
  if (geteuid() == 0) {
    s.cache.store(key, entry);
    ASSERT_EQ(chown(s.file.c_str(), 12345, 12345), 0);
    expect_set_aside("another owner");
  }
}

void expect_refused(const std::string& directory, const std::string& reason) {
  KernelCache cache(directory, kMebibyte);
  const CaughtWarnings warnings;
  EXPECT_EQ(cache.find(key), std::nullopt);
  cache.store(key, entry);
  EXPECT_EQ(cache.find(key), std::nullopt);
  ASSERT_EQ(warnings.found.size(), 1u);  // once
  EXPECT_EQ(warnings.found[0].code_text(), "TW5510");
  EXPECT_EQ(warnings.found[0].severity, Diagnostic::Severity::Warning);
  EXPECT_EQ(warnings.found[0].message,
            fmt::format("the kernel cache {} {}: kernels are compiled anew", directory, reason));
}

TEST(KernelCache, DirectoriesThatAreNotOursAreNotUsed) {
  Stored s;
  fs::create_directory_symlink(s.cache.directory(), s.scratch / "link");
  expect_refused(s.scratch / "link", "is a symbolic link or no directory");
  write_all(s.scratch / "file", "");
  expect_refused(s.scratch / "file", "is a symbolic link or no directory");
  expect_refused("/proc/none/cache", "cannot be made or read (No such file or directory)");
  for (mode_t mode : {0777, 0770, 0702}) {
    chmod(s.cache.directory().c_str(), mode);
    expect_refused(s.cache.directory(), "can be written by others");
  }
  chmod(s.cache.directory().c_str(), 0755);
  EXPECT_EQ(s.cache.find(key), entry);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(s.cache.directory().c_str(), 12345, 12345), 0);
    expect_refused(s.cache.directory(), "belongs to another user");
  }
}

TEST(KernelCache, NoDirectoryAndNoRoom) {
  const CaughtWarnings warnings;
  KernelCache none("", kMebibyte);
  none.store(key, entry);
  EXPECT_EQ(none.find(key), std::nullopt);
  const Scratch scratch;
  KernelCache small(scratch / "cache", 100);
  small.store(key, entry);
  EXPECT_EQ(small.find(key), std::nullopt);
  EXPECT_TRUE(warnings.found.empty());
  write_all(scratch / "file", "");
  KernelCache under_a_file(scratch / "file/cache", kMebibyte);
  under_a_file.store(key, entry);
  EXPECT_EQ(warnings.count(Code::CacheDirectoryRefused), 1);
}

TEST(KernelCache, WhatCannotBeWrittenIsAWarningAndLeavesNothing) {
  const Scratch scratch;
  const pid_t child = fork();
  if (child == 0) {  // a file size limit stands for a full disk, for this process only
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const CaughtWarnings warnings;
    KernelCache cache(scratch / "cache", kMebibyte);
    cache.store(key, entry);
    _exit(warnings.count(Code::CacheNotWritable) == 1 && fs::is_empty(scratch / "cache") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(KernelCache, TheLeastRecentlyUsedGoFirst) {
  const Scratch scratch;
  KernelCache cache(scratch / "cache", 10000);
  const CacheEntry kilobyte{"", std::string(1000, 'x')};
  const auto path = [&](int i) { return cache.directory() + "/" + KernelCache::file_name(std::to_string(i)); };
  for (int i = 0; i < 9; ++i) {
    cache.store(std::to_string(i), kilobyte);
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path(i).c_str(), times, 0), 0);
  }
  EXPECT_NE(cache.find("0"), std::nullopt);  // used now: newer than all others
  cache.store("9", kilobyte);                // 10 * 1073 bytes: over
  EXPECT_TRUE(fs::exists(path(0)));
  EXPECT_FALSE(fs::exists(path(1)));
  EXPECT_FALSE(fs::exists(path(2)));
  EXPECT_TRUE(fs::exists(path(3)));
  EXPECT_NE(cache.find("9"), std::nullopt);
}

TEST(KernelCache, AbandonedTemporaryFilesGo) {
  Stored s;
  const std::string old = s.cache.directory() + "/1-0-0.writing", fresh = s.cache.directory() + "/2-0-0.writing";
  write_all(old, "torn");
  write_all(fresh, "torn");
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  s.cache.store("another", entry);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST(KernelCache, DirectoryFromTheEnvironment) {
  const ScopedVariable own("TILEWRIGHT_CACHE_DIR", nullptr), size("TILEWRIGHT_CACHE_SIZE", nullptr);
  const ScopedVariable home("HOME", "/somebody");
  {
    const ScopedVariable xdg("XDG_CACHE_HOME", "/var/cache");
    EXPECT_EQ(KernelCache::from_environment().directory(), "/var/cache/tilewright");
    const ScopedVariable relative("XDG_CACHE_HOME", "cache");  // the specification: ignore relative paths
    EXPECT_EQ(KernelCache::from_environment().directory(), "/somebody/.cache/tilewright");
  }
  const ScopedVariable chosen("TILEWRIGHT_CACHE_DIR", "/some/where//");
  EXPECT_EQ(KernelCache::from_environment().directory(), "/some/where");
  const ScopedVariable odd("TILEWRIGHT_CACHE_SIZE", "12 MB");
  expect_refusal(Code::SettingInvalid, "TILEWRIGHT_CACHE_SIZE is '12 MB', which is no number of MiB",
                 [] { KernelCache::from_environment(); });
}

CpuKernelText answer_text() {
  return {"answer",
          kernel_text_head() +
              "extern \"C\" int tw_entry(const struct tw_call* c) { *(int*)c->buffers[0] = 42; return 0; }",
          {}};
}

int answer() {
  LaunchPlan plan;
  plan.name = "answer";
  plan.parameters = {tensor_parameter("y", i32, {constant(1)})};
  const Executable kernel = make_executable(plan, build_cpu_kernel(answer_text()), "cpu", "");
  const NDArray y = NDArray::zeros({1}, i32);
  kernel(y);
  return *static_cast<int32_t*>(y.data());
}

// Runs `act` in a child; its exit status.
pid_t in_child(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      status = act();
    } catch (...) {
    }
    _exit(status);
  }
  return child;
}

TEST(KernelCache, ProcessesThatCompileTheSameKernelAtOnceAllSucceed) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) children.push_back(in_child([] { return answer() == 42 ? 0 : 2; }));
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch / "cache"), {}), 1);
  KernelOrigin origin;
  const CaughtWarnings warnings;
  build_cpu_kernel(answer_text(), &origin);
  EXPECT_EQ(origin, KernelOrigin::Disk);
  EXPECT_TRUE(warnings.found.empty());
}

TEST(KernelCache, WritersThatAreKilledLeaveNothingWrong) {
  const Scratch scratch;
  const CacheEntry large{"", std::string(200000, 'L')};
  const std::string directory = scratch / "cache";
  const CaughtWarnings warnings;
  KernelCache cache(directory, 64 * kMebibyte);
  int found = 0;
  for (int round = 0; round < 40 || (found == 0 && round < 1000);
       ++round) {  // on a busy machine none gets far for a while
    const pid_t writer = in_child([&]() -> int {
      KernelCache mine(directory, 64 * kMebibyte);
      for (;;) mine.store(key, large);
    });
    usleep(static_cast<useconds_t>(500 + 137 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    if (const auto read = cache.find(key)) {
      ++found;
      ASSERT_EQ(*read, large);
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(warnings.found.empty());
}

}  // namespace
}  // namespace tilewright::runtime
