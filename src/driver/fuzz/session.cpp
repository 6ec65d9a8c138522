#include "driver/fuzz/session.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <deque>

#include "ir/print.h"
#include "runtime/report.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::fuzz {
namespace {

// Programs whose kernels share a text: enough that the start of the compiler does not show, few enough that a crash
// does not cost much.
constexpr uint64_t kGroup = 16;
constexpr uint64_t kGroupOnDevice = 64;     // a process that uses the device is slow to start
constexpr unsigned kDeadline = 300;         // seconds a group may take
constexpr unsigned kDeadlineOnDevice = 90;  // where an endless kernel keeps the others waiting

struct Group {
  uint64_t first, last;  // both included
};

void append(std::string& out, const Found& f) {
  const uint64_t head[] = {f.seed, static_cast<uint64_t>(f.finding.kind), f.finding.message.size(), f.text.size()};
  out.append(reinterpret_cast<const char*>(head), sizeof head).append(f.finding.message).append(f.text);
}

std::vector<Found> take_all(std::string_view bytes) {
  std::vector<Found> all;
  uint64_t head[4];
  while (bytes.size() >= sizeof head) {
    std::memcpy(head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    Found f;
    f.seed = head[0], f.finding.kind = static_cast<Finding::Kind>(head[1]);
    f.finding.message = bytes.substr(0, head[2]);
    f.text = bytes.substr(head[2], head[3]);
    bytes.remove_prefix(head[2] + head[3]);
    all.push_back(std::move(f));
  }
  return all;
}

// ---- what a child does

std::string check_valid_group(const Group& group, Engines engines) {
  std::string out;
  std::vector<Sample> samples;
  std::vector<uint64_t> seeds;
  for (uint64_t seed = group.first; seed <= group.last; ++seed) {
    try {
      samples.push_back(generate(seed));
      seeds.push_back(seed);
    } catch (const std::exception& e) {
      append(out, {seed, {Finding::Kind::Invalid, e.what()}, ""});
    }
  }
  const auto findings = check_all(samples, engines);
  for (size_t i = 0; i < samples.size(); ++i)
    if (findings[i]) append(out, {seeds[i], *findings[i], ir::print(samples[i].program)});
  return out;
}

std::string check_invalid_group(const Group& group) {
  std::string out;
  for (uint64_t seed = group.first; seed <= group.last; ++seed) {
    Random random(seed);
    std::string what;
    const std::string text = spoil(ir::print(generate(seed).program), random, what);
    if (const auto finding = check_refused(text, what)) append(out, {seed, *finding, text});
  }
  return out;
}

// ---- processes

struct Child {
  pid_t id = -1;
  int from = -1;
  unsigned deadline = 0;
  Group group{};
  std::string bytes;
};

template <class Work>
Child start(Engines engines, const Work& work) {
  int ends[2];
  check_internal(pipe(ends) == 0, "no pipe");
  Child child;
  child.deadline = engines == Engines::Cuda ? kDeadlineOnDevice : kDeadline;
  child.from = ends[0];
  child.id = fork();
  check_internal(child.id >= 0, "no process");
  if (child.id != 0) {
    close(ends[1]);
    return child;
  }
  close(ends[0]);
  alarm(child.deadline);
  setenv("TILEWRIGHT_CACHE_SIZE", "0", 1);  // nobody will ask for these kernels again
  runtime::replace_print_sink([](std::string_view) {});
  replace_warning_sink([](const Diagnostic&) {});
  int status = 0;
  try {
    const std::string bytes = work();
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = write(ends[1], bytes.data() + at, bytes.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
  } catch (const std::exception&) {
    status = 1;
  }
  _exit(status);
}

// Reads what is there; true at the end.
bool read_some(Child& child) {
  char buffer[65536];
  const ssize_t n = read(child.from, buffer, sizeof buffer);
  if (n > 0) child.bytes.append(buffer, static_cast<size_t>(n));
  return n <= 0;
}

// Empty: the child ended as it should.
std::optional<Finding> reap(const Child& child) {
  close(child.from);
  int status = 0;
  waitpid(child.id, &status, 0);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGALRM) return Finding{Finding::Kind::Hang, fmt::format("not done in {} s", child.deadline)};
    return Finding{Finding::Kind::Crash, fmt::format("signal {} ({})", signal, strsignal(signal))};
  }
  if (WEXITSTATUS(status) != 0) return Finding{Finding::Kind::Crash, "an exception left the checks"};
  return std::nullopt;
}

std::optional<Finding> check_apart(const ir::TileProgram& program, uint64_t seed, Engines engines) {
  Child child = start(engines, [&] {
    std::string out;
    if (const auto finding = check(program, arguments_for(program, seed), engines)) append(out, {seed, *finding, ""});
    return out;
  });
  while (!read_some(child)) {
  }
  if (auto died = reap(child)) return died;
  const std::vector<Found> found = take_all(child.bytes);
  return found.empty() ? std::nullopt : std::optional(found[0].finding);
}

class Session {
 public:
  Session(const SessionOptions& options, function_ref<void(const Found&)> on_finding)
      : options_(options), on_finding_(on_finding), next_(options.first), more_(options.first <= options.last) {}

  Summary run() {
    while (true) {
      while (static_cast<int>(children_.size()) < options_.jobs && start_one()) {
      }
      if (children_.empty()) break;
      wait_for_some();
    }
    std::sort(summary_.found.begin(), summary_.found.end(),
              [](const Found& a, const Found& b) { return a.seed < b.seed; });
    summary_.seconds = elapsed();
    return std::move(summary_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  bool start_one() {
    Group group;
    if (!alone_.empty()) {
      group = {alone_.front(), alone_.front()};
      alone_.pop_front();
    } else if (more_ && (options_.seconds <= 0 || elapsed() < options_.seconds)) {
      const uint64_t size = options_.engines == Engines::Cuda ? kGroupOnDevice : kGroup;
      group = {next_, options_.last - next_ < size ? options_.last : next_ + size - 1};
      more_ = group.last != options_.last;
      next_ = group.last + 1;
    } else {
      return false;
    }
    Child child = start(options_.engines, [&] {
      return options_.invalid ? check_invalid_group(group) : check_valid_group(group, options_.engines);
    });
    child.group = group;
    children_.push_back(std::move(child));
    return true;
  }

  void wait_for_some() {
    std::vector<pollfd> polls;
    for (const Child& c : children_) polls.push_back({c.from, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);
    for (size_t i = polls.size(); i-- > 0;) {
      if (!polls[i].revents || !read_some(children_[i])) continue;
      const Child child = std::move(children_[i]);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      finish(child);
    }
  }

  void finish(const Child& child) {
    const auto [first, last] = child.group;
    if (const auto died = reap(child)) {
      if (first != last) {  // which of them it was
        for (uint64_t seed = first; seed <= last; ++seed) alone_.push_back(seed);
        return;
      }
      std::string text;
      try {
        text = ir::print(generate(first).program);
      } catch (const std::exception&) {
        // The message says enough.
      }
      add({first, *died, text});
    } else {
      for (Found& f : take_all(child.bytes)) add(std::move(f));
    }
    summary_.programs += static_cast<int64_t>(last - first) + 1;
  }

  void add(Found found) {
    if (found.finding.kind == Finding::Kind::Refused) {
      ++summary_.refused;
      return;
    }
    if (options_.minimize && !options_.invalid && found.finding.kind != Finding::Kind::Invalid && !found.text.empty()) {
      const ir::TileProgram small = minimize(generate(found.seed).program, [&](const ir::TileProgram& p) {
        const auto finding = check_apart(p, found.seed, options_.engines);
        return finding && finding->kind == found.finding.kind;
      });
      found.text = ir::print(small);
      if (const auto finding = check_apart(small, found.seed, options_.engines)) found.finding = *finding;
    }
    on_finding_(found);
    summary_.found.push_back(std::move(found));
  }

  const SessionOptions& options_;
  function_ref<void(const Found&)> on_finding_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  uint64_t next_;
  bool more_;
  std::deque<uint64_t> alone_;  // seeds of groups that died
  std::vector<Child> children_;
  Summary summary_;
};

}  // namespace

Summary run_session(const SessionOptions& options, function_ref<void(const Found&)> on_finding) {
  return Session(options, on_finding).run();
}

}  // namespace tilewright::fuzz
