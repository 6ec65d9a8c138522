#include "passes/tile/turn_in_registers.h"

#include "analysis/anywhere.h"
#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostBytes = 512;   // of a thread: half of its registers
constexpr int64_t kFewestAcross = 2;  // neighbours that are worth it

// The dimension of a map along which memory has its neighbours; none: none of them, or points share elements.
std::optional<size_t> along(const Map& map, BufferId id, const std::vector<Expr>& index, const ProgramTables& p) {
  const Buffer& b = p.buffer(id);
  const Space space = p.buffer(p.root(id)).space;
  if ((space != Space::Global && space != Space::Shared) || index.empty() || b.type.is_packed()) return std::nullopt;
  if (!b.strides.empty() && constant_int(b.strides.back()) != 1) return std::nullopt;
  std::set<VarId> before;
  for (size_t d = 0; d + 1 < index.size(); ++d) before.merge(used_vars(index[d]));
  const std::set<VarId> last = used_vars(index.back());
  std::optional<size_t> found;
  for (size_t d = 0; d < map.vars.size(); ++d) {
    const VarId v = map.vars[d];
    if (!before.contains(v) && !last.contains(v)) return std::nullopt;
    if (!before.contains(v) && analysis::slope_through_casts(index.back(), v) == 1) found = d;
  }
  return found;
}

// What the map stores, under conditions; null: it does something else.
const Store* only_store(const Body& body) {
  if (body.size() != 1) return nullptr;
  if (const auto* branch = body[0].as<If>()) return branch->else_body.empty() ? only_store(branch->then_body) : nullptr;
  return body[0].as<Store>();
}

std::optional<Body> turned(const Stmt& s, int32_t launch, int64_t threads, TileProgram& p) {
  const auto* map = s.as<Map>();
  const auto* store = map ? only_store(map->body) : nullptr;
  if (!store || store->queue != Queue::None) return std::nullopt;
  std::vector<Expr> shape;
  int64_t points = 1;
  for (const Expr& e : map->extents) {
    const auto extent = constant_int(e);
    if (!extent) return std::nullopt;
    shape.push_back(constant(*extent)), points *= *extent;
  }
  const auto to = along(*map, store->to.buffer, store->to.indices, p);
  if (!to || constant_int(shape[*to]).value() < kFewestAcross) return std::nullopt;
  const auto is_global = [&](BufferId id) { return p.buffer(p.root(id)).space == Space::Global; };
  std::vector<Expr> loads;
  bool fits = true;
  walk_exprs(map->body, [&](const Expr& e) {
    const auto* load = e.as<Load>();
    const auto from = load ? along(*map, load->buffer, load->indices, p) : std::nullopt;
    if (load && p.buffer(p.root(load->buffer)).space == Space::Fragment) fits = false;
    if (!from || from == to || constant_int(shape[*from]).value() < kFewestAcross ||
        (!is_global(load->buffer) && !is_global(store->to.buffer)))
      return;
    if (std::ranges::any_of(loads, [&](const Expr& known) { return equal(known, e); })) return;
    // Global memory is asked whether there is such an element; of a tile on chip the program knows.
    const Expr& value = store->value.as<Cast>() ? store->value.as<Cast>()->value : store->value;
    if (!is_global(load->buffer) && (!map->body[0].as<Store>() || !equal(value, e))) return;
    fits = fits && !p.buffer(p.root(load->buffer)).address && analysis::may_look_anywhere(load->indices) &&
           !analysis::may_overlap(load->buffer, store->to.buffer, p);
    loads.push_back(e);
  });
  int64_t bits = 0;
  for (const Expr& e : loads) bits += e->type.storage_bits();
  if (!fits || loads.empty() || points * bits > kMostBytes * 8 * threads) return std::nullopt;
  Body out, rest{s};
  for (const Expr& e : loads) {
    Buffer tile;
    tile.name = p.buffer(e.as<Load>()->buffer).name + "_turned", tile.type = e->type, tile.space = Space::Fragment;
    tile.shape = shape, tile.launch = launch, tile.location = s->location;
    const BufferId id = p.new_buffer(std::move(tile));
    Map bring = *map;
    Substitution names;
    std::vector<Expr> place, here;
    for (size_t d = 0; d < map->vars.size(); ++d) {
      const DType type = p.var(map->vars[d]).type;
      bring.vars[d] = p.new_var(p.var(map->vars[d]).name, type);
      names[map->vars[d]] = var(bring.vars[d], type);
      here.push_back(var(bring.vars[d], type)), place.push_back(var(map->vars[d], type));
    }
    bring.body = {make_stmt(Store{{id, here}, substitute(e, names)}, s->location)};
    out.push_back(make_stmt(std::move(bring), s->location));
    rest = rewrite_exprs(rest, [&](const Expr& x) -> std::optional<Expr> {
      return equal(x, e) ? std::optional(load(id, place, e->type)) : std::nullopt;
    });
  }
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace

TileProgram turn_in_registers(TileProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Launch& launch = program.launches[i];
    launch.body = rewrite(
        launch.body, [&](const Stmt& s) { return turned(s, static_cast<int32_t>(i), launch.thread_count(), program); });
  }
  return program;
}

}  // namespace tilewright::passes
