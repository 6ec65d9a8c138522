#include "runtime/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tilewright::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kOutputLimit = 64 << 10;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

// Reads until every writer has closed the pipe: the child and the children it leaves it to. False at the deadline.
bool read_until_closed(int pipe, Clock::time_point end, std::string& output) {
  char buffer[4096];
  for (;;) {
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, milliseconds_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = read(pipe, buffer, sizeof buffer);
    if (count == 0) return true;
    if (count < 0 && errno != EINTR) return true;
    if (count > 0)
      output.append(buffer, std::min(static_cast<size_t>(count), kOutputLimit - std::min(kOutputLimit, output.size())));
  }
}

// A child may close its output and go on: it too has until the deadline.
bool wait_until(pid_t child, Clock::time_point end, int& status) {
  for (;;) {
    int raw = 0;
    const pid_t done = waitpid(child, &raw, WNOHANG);
    if (done == child) {
      status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
      return true;
    }
    if (done < 0 && errno != EINTR) return true;  // an application that ignores SIGCHLD: the status is lost
    if (milliseconds_until(end) == 0) return false;
    usleep(200);
  }
}

// Copies of descriptors, beyond the numbers that the child gets its own at.
std::vector<File> lifted(const std::vector<int>& descriptors) {
  std::vector<File> out;
  for (int fd : descriptors) out.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 3 + static_cast<int>(descriptors.size())));
  return out;
}

pid_t spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
            const std::string& directory, int output, const std::vector<int>& handed) {
  const std::vector<File> copies = lifted(handed);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  for (size_t i = 0; i < copies.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, copies[i].get(), 3 + static_cast<int>(i));
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);  // its own group, so that its children can be killed with it
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  if (posix_spawn(&child, argv[0].c_str(), &actions, &attributes, pointers(argv).data(),
                  pointers(environment).data()) != 0)
    child = -1;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return child;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                          const std::string& directory, std::chrono::milliseconds deadline,
                          const std::vector<int>& handed) {
  ProcessResult result;
  const Clock::time_point end = Clock::now() + deadline;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return result;
  File reading(ends[0]), writing(ends[1]);
  const pid_t child = spawn(argv, environment, directory, writing.get(), handed);
  if (child < 0) return result;
  result.started = true;
  writing = File();
  result.timed_out = !read_until_closed(reading.get(), end, result.output) || !wait_until(child, end, result.status);
  if (result.timed_out) {
    kill(-child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return result;
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

int File::release() { return std::exchange(fd_, -1); }

bool File::write_all(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace tilewright::runtime
