// What stands behind a tilewright::Executable: the launch plan, the engine's callee and the memory it lends to calls.
#pragma once
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

struct LoadedProgram {
  LaunchPlan plan;
  std::unique_ptr<Callee> callee;
  std::string engine;
  std::string source;
  WorkspacePool workspaces;
};

// Verifies the plan.
Executable make_executable(LaunchPlan plan, std::unique_ptr<Callee> callee, std::string engine, std::string source);

}  // namespace tilewright::runtime
