// What a user, a test or a tuner has fixed of a launch's plan: lines as plans are printed (plan.h, lines_of).
#pragma once
#include <map>
#include <optional>

#include "plan/plan.h"
#include "tilewright/diagnostic.h"

namespace tilewright::plan {

// A kind of schedule that a launch is to have. What is left open follows from the rest.
struct Wish {
  const Schedule* of = nullptr;
  std::optional<int64_t> number = {};
  std::optional<std::string> tile = {};  // by its name
};

struct Hints {
  std::vector<std::string> lines;
  bool no_loader = false;
  // ---- fit
  bool own_threads_and_steps = false;
  std::optional<std::string> half_steps_of, wide_steps_of;  // the name of a loop's variable; ...
  std::optional<int64_t> threads;
  // ---- work
  std::optional<Work::Kind> work;
  std::optional<int64_t> blocks, blocks_per_multiprocessor;
  bool reverse_odd_waves = false;
  std::optional<bool> drawn;
  std::vector<Wish> wishes;
  // ---- roles
  std::optional<Role::Takes> takes;
  std::optional<int64_t> load_registers, compute_registers;
  // ---- rings: slots, and whether boxes may be clipped, by the name of a tile
  std::map<std::string, int64_t> slots;
  std::map<std::string, bool> clips;
  std::optional<bool> overlap;
  std::map<std::string, Order::How> orders;  // by the name of a loop's variable
  std::optional<Staging> staging;

  bool fits_are_fixed() const { return own_threads_and_steps || half_steps_of || wide_steps_of || threads; }
  const Wish* wish_for(const Schedule& schedule) const;
  // Replaces an earlier one of the same kind.
  void wish(Wish wish);
  // What is fixed for a ring of these tiles.
  std::optional<int64_t> slots_of(const std::vector<ir::BufferId>& tiles, const ir::ProgramTables& program) const;
};

// CompileError (TW8206) at `at` for a line that no plan has. What follows from the rest (bytes, live, of, warps) may
// stand in a line, as it is printed.
Hints parse_hints(const std::vector<std::string>& lines, const SourceLocation& at);

// The first line that the plan has not as it was fixed; none: it has all.
std::optional<std::string> first_unmet(const Hints& hints, const Plan& plan, const ir::ProgramTables& program);

}  // namespace tilewright::plan
