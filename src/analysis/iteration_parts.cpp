#include "analysis/iteration_parts.h"

#include "analysis/accessed.h"
#include "analysis/body_order.h"
#include "analysis/columns.h"
#include "analysis/stored_once.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kTeam = 4 * kWarpThreads, kRows = 64;  // of a warpgroup's product
constexpr int64_t kMaxHanded = 256;  // elements of a fragment: a few words for each thread of a team
// Of a thread: the result, the scores, and these once more in half the width (mla_decode's 176 compile without spills).
constexpr int64_t kMaxRegisters = 200;
constexpr size_t kMaxRings = 4;  // one for each warp of the loader's warpgroup

class Finder {
 public:
  Finder(const ProgramTables& p, const Launch& launch) : p_(p), launch_(launch) {}

  // Whether two teams would take iterations at all.
  bool applies() {
    if (launch_.threads != std::vector<int64_t>{2 * kTeam} || !launch_.cluster.empty()) return false;
    int gemms = 0, inside = 0;
    walk(launch_.body, [&](const Stmt& s) { gemms += s.as<Gemm>() != nullptr; });
    for (size_t i = 0; i < launch_.body.size(); ++i) {
      const auto* loop = launch_.body[i].as<For>();
      if (!loop || inside > 0) continue;
      for (const Stmt& s : loop->body) {
        const auto* g = s.as<Gemm>();
        if (g && g->is_sparse()) return false;
        inside += g != nullptr;
        if (g) parts_.product = s;
      }
      if (inside > 0) at_ = i, parts_.loop = loop, parts_.at = launch_.body[i]->location;
    }
    if (inside < 2 || inside != gemms || parts_.loop->stages < 2 || parts_.loop->kind != LoopKind::Pipelined)
      return false;
    const Buffer& c = p_.buffer(product_of().c.buffer);
    return c.space == Space::Fragment && c.rank() == 2 && constant_int(c.shape[0]) == kRows;
  }

  std::string misfit() {
    if (std::string why = find_tiles(); !why.empty()) return why;
    if (std::string why = buffers(); !why.empty()) return why;
    if (std::string why = product(); !why.empty()) return why;
    if (std::string why = split_loop(); !why.empty()) return why;
    if (std::string why = scores(); !why.empty()) return why;
    if (std::string why = around(); !why.empty()) return why;
    return handed();
  }
  IterationParts take() { return std::move(parts_); }

 private:
  const Gemm& product_of() const { return *parts_.product.as<Gemm>(); }
  const std::string& name(BufferId id) const { return p_.buffer(id).name; }
  std::string refuse(const char* what, BufferId id) const { return fmt::format(fmt::runtime(what), name(id)); }
  bool is_moved(const Stmt& s) const {
    return std::any_of(parts_.tiles.begin(), parts_.tiles.end(), [&](const LoopTile& t) { return &*t.stmt == &*s; });
  }
  LoopTile* tile(BufferId id) {
    for (LoopTile& t : parts_.tiles)
      if (t.tile == id) return &t;
    return nullptr;
  }
  bool is_wide(const Stmt& s) const { return accessed_by({s}, p_).contains(parts_.result); }
  int64_t elements(BufferId id) const { return elements_on_chip(p_.buffer(id)); }

  // ---- what the launch is made of
  std::string find_tiles() {
    const FoundRings found = find_rings(p_, launch_);
    for (const FoundRing& r : found.rings)
      for (const Stmt& s : r.copies) {
        if (!s.as<Copy>()) continue;  // gathered: below
        const Copy& copy = *s.as<Copy>();
        const Buffer& to = p_.buffer(copy.to.buffer);
        const bool in_loop = !r.nest.empty();
        if (in_loop && r.nest.back() != parts_.loop) return refuse("'{}' is brought in another loop", copy.to.buffer);
        if (!is_whole(copy.to, to) || to.rank() != 2) return refuse("'{}' is not brought whole", copy.to.buffer);
        parts_.tiles.push_back({s, copy.to.buffer, LoopTile::By::Tma, in_loop});
      }
    for (const Stmt& s : parts_.loop->body) {
      const auto* map = s.as<Map>();
      const auto* store = map && map->body.size() == 1 ? map->body[0].as<Store>() : nullptr;
      if (!store || p_.buffer(store->to.buffer).space != Space::Shared) continue;
      const BufferId id = store->to.buffer;
      const auto at = followed(store->to.indices, map->vars);
      if (!at || !at->is_whole(constants(map->extents), constants(p_.buffer(id).shape)) || writers(id) != 1) continue;
      if (is_small(*map, *store))
        parts_.tiles.push_back({s, id, LoopTile::By::Map});
      else if (gathers(*map, *store))
        parts_.tiles.push_back({s, id, LoopTile::By::Gather});
    }
    return "";
  }
  int writers(BufferId id) const {
    int count = 0;
    for (const Stmt& s : launch_.body)
      for (const Body& body : {s.as<For>() ? s.as<For>()->body : Body{s}})
        for (const Stmt& x : body) count += written_by({x}, p_).contains(id);
    return count;
  }
  // Of global memory, and so little that one warp has it at once.
  bool is_small(const Map& map, const Store& store) const {
    const Buffers read = read_by(map.body, p_);
    return map.vars.size() == 1 && elements(store.to.buffer) <= kMaxHanded &&
           std::all_of(read.begin(), read.end(), [&](BufferId id) { return p_.buffer(id).space == Space::Global; });
  }
  // Rows of a tensor, by what a small Map of the loop, or global memory, says.
  bool gathers(const Map& map, const Store& store) {
    const auto* from = store.value.as<Load>();
    if (map.vars.size() != 2 || !from || p_.buffer(from->buffer).space != Space::Global ||
        p_.buffer(from->buffer).type != p_.buffer(store.to.buffer).type)
      return false;
    const auto column = followed({from->indices.back()}, map.vars), to = followed(store.to.indices, map.vars);
    if (!column || column->dims[0] != 1 || column->first[0] != 0 || to->dims != std::vector<int>{0, 1}) return false;
    for (size_t d = 0; d + 1 < from->indices.size(); ++d)
      if (used_vars(from->indices[d]).contains(map.vars[1])) return false;
    bool known = true;
    for (const Expr& index : from->indices)
      walk(index, [&](const Expr& e) {
        const auto* n = e.as<Load>();
        if (!n || p_.buffer(n->buffer).space == Space::Global) return;
        const LoopTile* rows = tile(n->buffer);
        const auto row = followed(n->indices, map.vars);
        known = known && rows && rows->by == LoopTile::By::Map && row && row->dims == std::vector<int>{0} &&
                row->first[0] == 0;
      });
    return known;
  }
  std::string buffers() {
    for (BufferId id : used_buffers(launch_.body)) {
      const Buffer& b = p_.buffer(id);
      if (b.is_view() || b.reducer) return refuse("'{}' is a view or a reducer", id);
      const bool fits = b.space == Space::Global || b.space == Space::Fragment ||
                        (b.space == Space::Shared && (tile(id) || id == product_of().a.buffer));
      if (!fits) return refuse("the loader does not bring '{}'", id);
    }
    std::string why;
    walk(launch_.body, [&](const Stmt& s) {
      const bool known = s.as<Let>() || s.as<Store>() || s.as<For>() || s.as<If>() || s.as<Copy>() || s.as<Fill>() ||
                         s.as<Gemm>() || s.as<Map>() || s.as<Reduce>();
      if (!known) why = fmt::format("{} belongs to all threads", name_of(s));
      const auto* copy = s.as<Copy>();
      if (copy && (copy->combine != ir::Combine::None || copy->im2col.present())) why = "a copy combines";
    });
    if (why.empty() && used_vars(launch_.body).contains(launch_.thread[0])) why = "threads have numbers";
    size_t rings = 1;  // the values' is two
    for (const LoopTile& t : parts_.tiles) rings += t.in_loop;
    return why.empty() && rings > kMaxRings ? "the loader's warpgroup has four warps" : why;
  }
  bool is_whole_matrix(const Region& r) const {
    return p_.buffer(r.buffer).rank() == 2 && is_whole(r, p_.buffer(r.buffer));
  }
  std::string product() {
    const Gemm& g = product_of();
    parts_.result = g.c.buffer, parts_.left = g.a.buffer, parts_.values = g.b.buffer;
    const Buffer &a = p_.buffer(g.a.buffer), &c = p_.buffer(g.c.buffer);
    const LoopTile* values = tile(g.b.buffer);
    if (!values || !values->in_loop) return refuse("'{}' is not brought for each iteration", g.b.buffer);
    if (!g.completion.immediate() || g.transpose_a || g.transpose_b || g.clear)
      return "the last product is not c += a b";
    if (!is_whole_matrix(g.a) || !is_whole_matrix(g.b) || !is_whole_matrix(g.c)) return "it multiplies parts of tiles";
    if (a.type.bits != 16) return refuse("'{}' is not of 16 bits", g.a.buffer);
    parts_.half = constant_int(c.shape[1]).value_or(0) / 2;
    if (parts_.half % 16 != 0 || parts_.half > 256 || parts_.half * 2 != constant_int(c.shape[1]))
      return refuse("half the columns of '{}' are none that wgmma and TMA take", g.c.buffer);
    const int64_t keys = constant_int(a.shape[1]).value_or(0);
    if ((2 * parts_.half + 3 * keys) / 4 > kMaxRegisters) return "a thread has not the registers for both products";
    return "";
  }

  // ---- the loop
  std::string split_loop() {
    bool is_over = false;
    for (const Stmt& s : parts_.loop->body) {
      if (is_moved(s)) continue;
      if (is_over) return "something follows the last product";
      if (s.as<Let>()) {
        if (std::string why = names_only(s); !why.empty()) return why;
        parts_.names.push_back(s);
      } else if (s.as<Gemm>()) {
        is_over = &*s == &*parts_.product;
        if (is_over) continue;
        if (!parts_.own.empty() || !parts_.rescale.empty()) return "there are products of three kinds";
        parts_.scores.push_back(s);
      } else if (s.as<For>()) {
        return "there is a loop in the loop";
      } else if (is_wide(s)) {
        if (written_by({s}, p_) != Buffers{parts_.result} || !narrows(s))
          return refuse("columns of '{}' are not apart", parts_.result);
        for (BufferId id : read_by({s}, p_))
          if (p_.buffer(id).space == Space::Shared) return refuse("'{}' scales the result, and is shared", id);
        parts_.rescale.push_back(s);
      } else {
        if (meet(written_by({s}, p_), read_by(parts_.rescale, p_), p_)) return "what scales the result is made twice";
        (parts_.scores.empty() ? parts_.before : parts_.own).push_back(s);
      }
    }
    for (const Body* part : {&parts_.before, &parts_.own})
      for (const Stmt& s : *part)
        if (std::string why = computes_only(s, part == &parts_.own); !why.empty()) return why;
    return left();
  }
  // Names that the loader and both teams find out each for itself.
  std::string names_only(const Stmt& s) const {
    for (BufferId id : read_by({s}, p_))
      if (p_.buffer(id).space != Space::Global) return refuse("a name is of what '{}' holds", id);
    return "";
  }
  bool narrows(const Stmt& s) const { return columns_are_apart(p_, s, parts_.result); }
  // Statements that make fragments of others, or the last product's operand.
  std::string computes_only(const Stmt& s, bool behind_products) {
    for (BufferId id : written_by({s}, p_))
      if (p_.buffer(id).space != Space::Fragment && !(id == parts_.left && s.as<Copy>()))
        return refuse("'{}' is written by all threads", id);
    for (BufferId id : read_by({s}, p_)) {
      if (p_.buffer(id).space != Space::Shared) continue;
      LoopTile* read = tile(id);
      if (!read || !read->in_loop || id == parts_.values || !behind_products)
        return refuse("'{}' is read by more than products", id);
      read->in_own = true;
    }
    return "";
  }
  // The last product's first operand is made once, in the iteration, of a fragment.
  std::string left() const {
    int made = 0, whole = 0;
    for (const Body* part : {&parts_.before, &parts_.own})
      for (const Stmt& s : *part) {
        if (!written_by({s}, p_).contains(parts_.left)) continue;
        const auto* copy = s.as<Copy>();
        ++made, whole += copy && p_.buffer(copy->from.buffer).space == Space::Fragment && is_whole_matrix(copy->to) &&
                         is_whole_matrix(copy->from);
      }
    if (p_.buffer(parts_.left).space == Space::Shared && (made != 1 || whole != 1))
      return refuse("'{}' is not a copy of a fragment", parts_.left);
    return made == 0 ? refuse("'{}' is not made in the loop", parts_.left) : "";
  }
  std::string scores() {
    if (parts_.scores.empty()) return "there is no product of scores";
    const BufferId c = parts_.scores[0].as<Gemm>()->c.buffer;
    std::map<BufferId, int> uses;
    for (size_t i = 0; i < parts_.scores.size(); ++i) {
      const Gemm& g = *parts_.scores[i].as<Gemm>();
      if (g.c.buffer != c || c == parts_.result || !is_whole_matrix(g.c) || p_.buffer(c).space != Space::Fragment)
        return "the first products do not add to one fragment";
      if (!g.completion.immediate() || g.transpose_a || (i > 0 && g.clear))
        return "the first products are not c += a b";
      if (!is_whole_matrix(g.a) || !is_whole_matrix(g.b)) return "it multiplies parts of tiles";
      for (BufferId id : {g.a.buffer, g.b.buffer}) {
        if (!tile(id) || tile(id)->by == LoopTile::By::Map) return refuse("'{}' is not brought by the loader", id);
        ++uses[id];
      }
    }
    for (const Stmt& s : parts_.scores) {
      const Gemm& g = *s.as<Gemm>();
      if (g.a.buffer != parts_.values && g.b.buffer != parts_.values) continue;
      // Halves of the values' columns are halves of what these scores sum over.
      if (g.b.buffer != parts_.values || !g.transpose_b || tile(g.a.buffer)->in_loop || uses[g.a.buffer] > 1 ||
          uses[g.b.buffer] > 1)
        return refuse("the scores take '{}' otherwise than by its columns", parts_.values);
      parts_.halved.insert(g.a.buffer);
    }
    parts_.halved.insert(parts_.values);
    return "";
  }

  // ---- before and after the loop: both teams do it, each for its columns
  std::string around() {
    Buffers read_in_loop = read_by(parts_.loop->body, p_);
    for (size_t i = 0; i < launch_.body.size(); ++i) {
      const Stmt& s = launch_.body[i];
      if (i == at_ || is_moved(s)) continue;
      if (s.as<For>()) return "there is another loop";
      if (std::string why = s.as<Let>() ? names_only(s) : ""; !why.empty()) return why;
      const Buffers written = written_by({s}, p_);
      if (is_wide(s) && !narrows(s)) return refuse("columns of '{}' are not apart", parts_.result);
      for (BufferId id : read_by({s}, p_))
        if (p_.buffer(id).space == Space::Shared) return refuse("'{}' is read by more than products", id);
      for (BufferId id : written) {
        const bool leaves = p_.buffer(id).space == Space::Global && i > at_;
        if (leaves && read_in_loop.contains(id)) return refuse("'{}' is read in the loop and written after it", id);
        if (!leaves && p_.buffer(id).space != Space::Fragment) return refuse("'{}' is written by all threads", id);
        if (leaves && written.size() > 1) return refuse("'{}' is not all that a statement writes", id);
        if (is_wide(s) && !leaves && id != parts_.result) return refuse("columns of '{}' are not apart", parts_.result);
      }
      (i < at_ ? parts_.prologue : parts_.epilogue).push_back(s);
    }
    return results();
  }
  // Nothing orders the two teams behind the loop: neither comes to where the other has stored.
  std::string results() {
    const std::set<BufferId> once = stored_tensors(p_, launch_).once;
    const Buffers read_before = read_by(parts_.prologue, p_);
    for (const Stmt& s : parts_.epilogue)
      for (BufferId id : written_by({s}, p_)) {
        if (p_.buffer(id).space != Space::Global) continue;
        if (std::ranges::any_of(read_before, [&](BufferId x) { return may_overlap(x, id, p_); }))
          return refuse("'{}' is read before the loop and written after it", id);
        for (const Stmt& other : parts_.epilogue) {
          if (other.same(s)) continue;
          const auto meets = [&](BufferId x) { return may_overlap(x, id, p_); };
          const Buffers read = read_by({other}, p_), written = written_by({other}, p_);
          if (std::ranges::any_of(read, meets)) return refuse("'{}' is read and written after the loop", id);
          if (std::ranges::any_of(written, meets) && !once.contains(id))
            return refuse("'{}' may get elements again, of the other team", id);
        }
      }
    return "";
  }

  // ---- what an iteration leaves to others
  std::string handed() {
    // What is read, or written in part, before it is written whole is of the iteration before.
    Buffers known, wanted;
    auto visit = [&](const Stmt& s) {
      for (BufferId id : read_by({s}, p_))
        if (!known.contains(id)) wanted.insert(id);
      for (BufferId id : written_by({s}, p_)) {
        if (writes_whole(s, id, p_))
          known.insert(id);
        else if (!known.contains(id))
          wanted.insert(id);
      }
    };
    for (const Stmt& s : parts_.before) visit(s);
    Buffers made = written_by(parts_.before, p_);
    for (BufferId id : written_by(parts_.own, p_)) made.insert(id);
    // That is done before the other team hands over what it has made.
    for (BufferId id : wanted)
      if (made.contains(id)) return refuse("'{}' of the iteration before is needed in front of the scores", id);
    const Gemm& first = *parts_.scores[0].as<Gemm>();
    if (constant_int(first.clear ? first.clear : constant(boolean, int64_t{0})) != 1 && !known.contains(first.c.buffer))
      return refuse("'{}' goes from one iteration to the next", first.c.buffer);
    known.insert(first.c.buffer);
    for (const Stmt& s : parts_.own) visit(s);
    for (const Body* part : {&parts_.rescale, &parts_.epilogue})
      for (BufferId id : read_by(*part, p_)) wanted.insert(id);
    for (BufferId id : wanted) {
      if (!made.contains(id) || id == parts_.result) continue;
      if (elements(id) > kMaxHanded) return refuse("'{}' goes from one iteration to the next", id);
      parts_.handed.insert(id);
    }
    put_off();
    return "";
  }
  // The other team waits for the scores: what neither they nor the result need is done beside the product.
  void put_off() {
    const Body own = std::exchange(parts_.own, {});
    std::vector<bool> first(own.size(), false);
    Buffers needed = read_by(parts_.before, p_), frozen = written_by(parts_.rescale, p_);
    for (BufferId id : read_by(parts_.rescale, p_)) needed.insert(id);
    needed.insert(parts_.left), frozen.insert(parts_.left), frozen.insert(parts_.result);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = own.size(); i-- > 0;) {
        const Buffers read = read_by({own[i]}, p_), written = written_by({own[i]}, p_);
        bool is_first = meet(written, needed, p_) || meet(read, frozen, p_);
        for (BufferId id : read) is_first = is_first || p_.buffer(id).space != Space::Fragment;
        for (size_t later = i + 1; later < own.size(); ++later)
          is_first = is_first || (first[later] && (meet(written_by({own[later]}, p_), read, p_) ||
                                                   meet(read_by({own[later]}, p_), written, p_) ||
                                                   meet(written_by({own[later]}, p_), written, p_)));
        if (!is_first || first[i]) continue;
        first[i] = changed = true;
        needed.insert(read.begin(), read.end());
      }
    }
    for (size_t i = 0; i < own.size(); ++i) (first[i] ? parts_.own : parts_.later).push_back(own[i]);
    const Buffers made_first = written_by(parts_.own, p_);
    for (BufferId id : parts_.handed)
      if (!made_first.contains(id)) parts_.handed_later.insert(id);
    for (BufferId id : parts_.handed_later) parts_.handed.erase(id);
  }

  const ProgramTables& p_;
  const Launch& launch_;
  size_t at_ = 0;  // the loop's place in the launch
  IterationParts parts_;
};

}  // namespace

std::optional<IterationParts> iteration_parts(const ProgramTables& program, const Launch& launch, std::string& why) {
  Finder finder(program, launch);
  if (!finder.applies()) return std::nullopt;
  why = finder.misfit();
  if (!why.empty()) return std::nullopt;
  return finder.take();
}

}  // namespace tilewright::analysis
