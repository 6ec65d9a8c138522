// What every statement reads and writes, exhaustive by construction: effects_of() matches all ops, so a new op without
// an effects() overload does not compile.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

enum class Access : uint8_t { Read, Write, Accumulate /* read-modify-write */, Order };
enum class Proxy : uint8_t { Generic, Async, Tensor };
enum class Scope : uint8_t { Thread /* scalar statement */, Warp, Collective /* of the executing set */ };

struct Effect {
  Access access = Access::Read;
  Region region;  // the box touched; elements have extents 1
  Proxy proxy = Proxy::Generic;
  Completion completion;                // default: immediate
  std::optional<AtomicOp> update = {};  // of an Accumulate that is an atomic
};

// Whether two updates of an element leave the same in either order; none is no atomic, and never does.
bool commute(std::optional<AtomicOp> a, std::optional<AtomicOp> b);

struct Effects {
  Scope scope = Scope::Thread;
  std::vector<Effect> list;  // of this statement alone; nested bodies have their own
};

Effects effects_of(const Stmt& stmt);
// The same without what the statement's expressions load.
Effects own_effects_of(const Stmt& stmt);

// What a body mentions, as the storage that it is.
std::set<BufferId> used_roots(const Body& body, const ProgramTables& program);
// What of it a body does more with than read it.
std::set<BufferId> changed_roots(const Body& body, const ProgramTables& program);

}  // namespace tilewright::ir
