// The walk: scopes, what may stand where, and what is thrown.
#include "ir/verify.h"

#include "ir/effects.h"
#include "ir/match.h"
#include "ir/rewrite.h"
#include "ir/text_form.h"
#include "ir/verify_rules.h"

namespace tilewright::ir {
namespace {

constexpr size_t kMaxFindings = 50;  // more says nothing new about a program that a pass broke

template <class T>
constexpr bool is_thread_code() {
  return std::is_same_v<T, Let> || std::is_same_v<T, Store> || std::is_same_v<T, Atomic> || std::is_same_v<T, Call> ||
         std::is_same_v<T, For> || std::is_same_v<T, While> || std::is_same_v<T, If> || std::is_same_v<T, Break> ||
         std::is_same_v<T, Continue> || std::is_same_v<T, Print> || std::is_same_v<T, Assert> ||
         std::is_same_v<T, Assume>;
}

std::string level_text(Level level) {
  return level == Level::Tile ? "tile program" : level == Level::Thread ? "thread program" : "loop program";
}

}  // namespace

Verifier::Verifier(const ProgramTables& program, Level level)
    : program_(program), level_(level), visible_(program.vars.size()), bound_(program.vars.size()) {}

std::vector<Diagnostic> Verifier::run() {
  header();
  for (size_t i = 0; i < program_.launches.size(); ++i) launch(program_.launches[i], static_cast<int32_t>(i));
  return std::move(findings_);
}

void Verifier::add(Code code, std::string message, std::string help) {
  if (findings_.size() >= kMaxFindings) return;
  const bool exists = location_.index < program_.locations.size();
  findings_.push_back(make_diagnostic(code, exists ? program_.location(location_) : SourceLocation{},
                                      std::move(message), std::move(help)));
}

void Verifier::add_about(Code code, BufferId buffer, std::string message, std::string help) {
  const size_t before = findings_.size();
  add(code, std::move(message), std::move(help));
  const LocationId declared = row(buffer).location;
  if (findings_.size() == before || declared.index >= program_.locations.size()) return;
  const SourceLocation& at = program_.location(declared);
  if (at.known()) findings_.back().notes.push_back({fmt::format("'{}' is declared here", name(buffer)), at});
}

std::string Verifier::name(VarId id) const {
  return id.index < program_.vars.size() ? program_.var(id).name : fmt::format("variable {}", id.index);
}
std::string Verifier::name(BufferId id) const {
  return id.index < program_.buffers.size() ? row(id).name : fmt::format("buffer {}", id.index);
}

// ---- scopes -------------------------------------------------------------------------------------------------------

void Verifier::bind(VarId id) {
  if (!check_id(id)) return;
  // Loops may bind a variable again once it is out of scope: fission repeats a loop.
  const bool taken = level_ == Level::Tile ? bound_[id.index] : visible_[id.index];
  if (taken) add(Code::VerifyBoundTwice, fmt::format("'{}' is bound twice", name(id)));
  visible_[id.index] = bound_[id.index] = true;
  scope_.push_back(id);
}

void Verifier::leave_scope(size_t depth) {
  for (; scope_.size() > depth; scope_.pop_back()) visible_[scope_.back().index] = false;
}

void Verifier::launch(const Launch& launch, int32_t index) {
  const size_t depth = scope_.size();
  in_launch_ = &launch;
  launch_ = index;
  location_ = launch.location;
  check_launch(launch);
  for (uint32_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].launch == index) check_buffer(BufferId{i});
  body(launch.body, {});
  leave_scope(depth);
  in_launch_ = nullptr;
  launch_ = -1;
}

// ---- statements ---------------------------------------------------------------------------------------------------

void Verifier::body(const Body& body, Place place) {
  const size_t depth = scope_.size();
  for (const Stmt& stmt : body) {
    if (stmt) statement(stmt, place);
  }
  leave_scope(depth);
}

void Verifier::statement(const Stmt& stmt, Place place) {
  location_ = stmt->location;
  checked_.clear();
  if (!is_legal_here(stmt, place)) return;
  role_ = place.role;
  match(stmt->op, [&](const auto& node) { check(node); });
  check_peers(stmt);
  nested(stmt, place);
}

// Of another block's memory nothing is known but what is written there.
void Verifier::check_peers(const Stmt& stmt) {
  const bool writes = stmt.as<Copy>() || stmt.as<Store>();
  for (const Effect& e : effects_of(stmt).list) {
    if (!e.region.valid() || e.region.buffer.index >= program_.buffers.size() || !row(e.region.buffer).cta) continue;
    if (e.access != Access::Write || !writes)
      add_about(Code::VerifyCluster, e.region.buffer,
                fmt::format("{} uses '{}', which is in another block's memory", name_of(stmt), name(e.region.buffer)),
                "copies and stores write there; a block reads its own");
  }
}

bool Verifier::is_legal_here(const Stmt& stmt, const Place& place) {
  const auto* loop = stmt.as<For>();
  const bool wrong_loop = loop && ((loop->kind == LoopKind::Grid && level_ == Level::Thread) ||
                                   (loop->kind == LoopKind::Pipelined && level_ != Level::Tile));
  if (!includes(level_of(stmt), level_) || wrong_loop) {
    add(Code::VerifyLevel,
        fmt::format("{} is not legal in a {}", loop ? fmt::format("a {} loop", name_of(loop->kind)) : name_of(stmt),
                    level_text(level_)));
    return false;
  }
  const bool jump = stmt.as<Break>() || stmt.as<Continue>();
  if (jump && !place.in_loop) {
    if (place.in_map)
      add(Code::VerifyJumpFromMap, fmt::format("{} would leave a map", name_of(stmt)),
          "the points of a map have no order: guard the rest of the body by an if");
    else
      add(Code::VerifyJump, fmt::format("{} stands outside of any loop", name_of(stmt)));
    return false;
  }
  if (!place.in_map) return true;
  if (stmt.as<Return>()) {
    add(Code::VerifyJumpFromMap, "return would leave a map",
        "the points of a map have no order: guard the rest of the body by an if");
    return false;
  }
  const bool thread_code =
      match(stmt->op, [](const auto& node) { return is_thread_code<std::decay_t<decltype(node)>>(); });
  const bool pipelined = loop && loop->kind == LoopKind::Pipelined;
  if ((thread_code && !pipelined) || stmt.as<Map>()) return true;  // nested() looks at maps in maps
  add(Code::VerifyMapBody,
      fmt::format("{} stands in a map, whose body is code of one point",
                  pipelined ? "a pipelined loop" : name_of(stmt)),
      "move it out of the map");
  return false;
}

void Verifier::nested(const Stmt& stmt, Place place) {
  const size_t depth = scope_.size();
  if (const auto* map = stmt.as<Map>()) {
    if (place.in_map) {
      add(Code::VerifyMapNested, "a map in a map that does more than contain it", "make it one map over all indices");
      return;
    }
    const size_t nest = place.nest.value_or(depth);
    for (const Expr& extent : map->extents)
      for (VarId id : used_vars(extent))
        if (std::find(scope_.begin() + static_cast<std::ptrdiff_t>(nest), scope_.end(), id) != scope_.end())
          add(Code::VerifyMapNested, fmt::format("the extent of a map depends on '{}' of the map around it", name(id)),
              "take the largest extent, and guard the points by an if");
    for (VarId var : map->vars) bind(var);
    place.in_map = true;
    place.in_loop = false;
    // Perfectly nested maps are one map over more indices.
    const bool perfect = map->body.size() == 1 && map->body[0].as<Map>();
    if (perfect) place.in_map = false;
    place.nest = perfect ? std::optional(nest) : std::nullopt;
    body(map->body, place);
  } else if (const auto* loop = stmt.as<For>()) {
    bind(loop->var);
    place.in_loop = true;
    body(loop->body, place);
  } else if (const auto* role = stmt.as<Role>()) {
    place.role = role;
    body(role->body, place);
  } else {
    if (stmt.as<While>()) place.in_loop = true;
    for_each_body(stmt, [&](const Body& inner) { body(inner, place); });
  }
  leave_scope(depth);
  match(stmt->op, [&](const auto& node) {  // results are known after the statement
    using T = std::decay_t<decltype(node)>;
    if constexpr (std::is_same_v<T, Let>) bind(node.var);
    if constexpr (requires { node.result; })
      if (node.result.valid()) bind(node.result);
  });
}

// ---- entry points -------------------------------------------------------------------------------------------------

std::vector<Diagnostic> verify(const TileProgram& program) { return Verifier(program, Level::Tile).run(); }

std::vector<Diagnostic> verify(const LoopProgram& program) { return Verifier(program, Level::Loop).run(); }

std::vector<Diagnostic> verify(const ThreadProgram& program) { return Verifier(program, Level::Thread).run(); }

void throw_findings(const std::vector<Diagnostic>& findings, const char* after_pass) {
  if (findings.empty()) return;
  std::vector<Note> notes;
  for (const Diagnostic& d : findings) notes.push_back({d.code_text() + ": " + d.message, d.location});
  if (after_pass) {
    throw InternalError(make_diagnostic(
        Code::Internal, findings[0].location, fmt::format("after the pass {} the program is not valid", after_pass),
        "this is a mistake in Tilewright, not in your program: please report it", std::move(notes)));
  }
  Diagnostic first = findings[0];
  first.notes.insert(first.notes.end(), notes.begin() + 1, notes.end());
  throw CompileError(std::move(first));
}

// An index that a pass has made a number may stand where nothing ever comes by: under a condition of the call's.
static void check(std::vector<Diagnostic> findings, const char* after_pass) {
  if (after_pass)
    std::erase_if(findings,
                  [](const Diagnostic& d) { return d.code == static_cast<uint16_t>(Code::VerifyIndexBounds); });
  throw_findings(findings, after_pass);
}

void check_valid(const TileProgram& program, const char* after_pass) { check(verify(program), after_pass); }
void check_valid(const LoopProgram& program, const char* after_pass) { check(verify(program), after_pass); }
void check_valid(const ThreadProgram& program, const char* after_pass) { check(verify(program), after_pass); }

}  // namespace tilewright::ir
