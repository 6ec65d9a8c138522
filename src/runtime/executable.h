// What stands behind a tilewright::Executable: the launch plan, the engine's callee and the memory it lends to calls.
#pragma once
#include <atomic>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/launch_plan.h"
#include "runtime/report.h"

namespace tilewright::runtime {

// What an engine makes of a program. run() may be called by several threads at a time; prints and failed assertions go
// to `report`.
struct Callee {
  virtual ~Callee() = default;
  virtual void run(const BoundCall& call, CallReport& report) = 0;
  // Whether run() looks at more of a call than its buffers and integers.
  virtual bool reads_arguments() const { return true; }
};

// A set of workspaces for one call at a time; calls that overlap get a set each.
class WorkspacePool {
 public:
  struct Set {
    std::vector<NDArray> memory;
  };
  std::unique_ptr<Set> take();
  void give_back(std::unique_ptr<Set> set);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Set>> free_;
};

// Bytes of a workspace in this call. LaunchError if its size has no value.
int64_t workspace_bytes(const BoundCall& call, const Workspace& workspace);

// A program as it was compiled. Its plan's assumptions and alignments are what it needs of a call.
struct Version {
  LaunchPlan plan;
  std::unique_ptr<Callee> callee;
  std::string source;
};
// What is known of calls that the first version does not take.
struct CallFacts {
  bool aligned = false;     // tensors begin at multiples of 16 bytes
  std::vector<bool> holds;  // of the first version's own assumptions, in their order; none is asked where not aligned
  auto operator<=>(const CallFacts&) const = default;
};
using MakeVersion = std::function<Version(const CallFacts&)>;

// What is fast under assumptions of its own, and what takes every call of the program.
struct LoadedProgram {
  LoadedProgram(LaunchPlan plan, Version first, MakeVersion general, std::string engine);

  const LaunchPlan& plan() const { return plan_; }  // what every call must fulfil
  const Version& first() const { return first_; }
  const std::string& engine() const { return engine_; }
  const std::vector<std::string>& assumptions() const { return assumptions_; }
  int64_t general_calls() const { return general_calls_.load(std::memory_order_relaxed); }
  WorkspacePool& workspaces() const { return workspaces_; }

  // Binds the call by the plan of the version that takes it. Others than the first are made when a first call needs
  // them.
  const Version& bind(std::span<const Argument> arguments, BoundCall& call) const;

 private:
  struct General {
    Version version;
    std::once_flag made;
  };
  bool holds(const AssumeCheck& own, const BoundCall& call) const;
  bool assumptions_hold(const BoundCall& call) const;
  CallFacts facts_of(const BoundCall& call) const;
  General& general_for(CallFacts facts) const;

  LaunchPlan plan_;
  Version first_;
  MakeVersion make_general_;  // none: the first takes every call
  mutable std::map<CallFacts, std::unique_ptr<General>> general_;
  mutable std::mutex finding_, making_;
  std::string engine_;
  std::vector<std::string> assumptions_;  // the first version's own
  mutable std::atomic<int64_t> general_calls_ = 0;
  mutable WorkspacePool workspaces_;
};

// Binds a call and runs it; the version that ran, or null where there was nothing to do.
const Version* run_call(const LoadedProgram& program, std::span<const Argument> arguments, BoundCall& call);
void run_bound(const LoadedProgram& program, const Version& version, BoundCall& call);

// Verify the plans. The second: `first` for calls that fulfil its plan, which is `plan` and more; for others what
// `general` makes.
Executable make_executable(LaunchPlan plan, std::unique_ptr<Callee> callee, std::string engine, std::string source);
Executable make_executable(LaunchPlan plan, Version first, MakeVersion general, std::string engine);

}  // namespace tilewright::runtime
