#include "passes/schedule/drawn_tiles.h"

#include "ir/operators.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Expr turns(int64_t n) { return constant(i32, n); }

BufferId new_buffer(TileProgram& p, const Launch& launch, const char* name, DType type, Space space,
                    std::vector<Expr> shape) {
  Buffer b;
  b.name = name, b.type = type, b.space = space, b.shape = std::move(shape), b.location = launch.location;
  if (space == Space::Global)
    b.workspace = b.zeroed = true;
  else
    b.launch = static_cast<int32_t>(&launch - p.launches.data());
  return p.new_buffer(std::move(b));
}

}  // namespace

DrawnTiles::DrawnTiles(TileProgram& p, const Launch& launch, Expr tiles, Expr blocks, Expr block, int64_t ahead)
    : program_(p),
      at_(launch.location),
      threads_(launch.thread),
      tiles_(std::move(tiles)),
      blocks_(std::move(blocks)),
      block_(std::move(block)),
      ahead_(ahead),
      type_(tiles_->type),
      counter_(new_buffer(p, launch, "tiles_drawn", type_, Space::Global, {turns(1)})),
      numbers_(new_buffer(p, launch, "next_tiles", type_, Space::Shared, {turns(ahead + 1)})),
      drawn_(new_buffer(p, launch, "drawn", type_, Space::Local, {})) {}

template <class T>
Stmt DrawnTiles::at_launch(T op) const {
  return make_stmt(std::move(op), at_);
}

Body DrawnTiles::by_one_thread(Body body) const {
  Expr first = constant(boolean, int64_t{1});
  for (VarId thread : threads_) first = logical_and(first, binary(BinaryOp::Eq, var(thread, i32), turns(0)));
  return {at_launch(If{first, std::move(body), {}})};
}

Expr DrawnTiles::number_of(const Expr& turn) const {
  return load(numbers_, {binary(BinaryOp::FloorMod, turn, turns(ahead_ + 1))}, type_);
}
Expr DrawnTiles::is_a_tile(const Expr& n) const { return binary(BinaryOp::Lt, n, tiles_); }

Assume DrawnTiles::known(const Expr& n) const {
  return {logical_and(binary(BinaryOp::Le, number(0), n), is_a_tile(n))};
}

Expr DrawnTiles::number(int64_t n) const { return constant(type_, n); }
Expr DrawnTiles::drawn() const { return load(drawn_, {}, type_); }
Expr DrawnTiles::number_drawn() const {
  const Expr some = binary(BinaryOp::Le, number(0), drawn());
  return select(logical_and(some, binary(BinaryOp::Lt, drawn(), sub(tiles_, blocks_))), add(blocks_, drawn()), tiles_);
}

Body DrawnTiles::draw(const Expr& if_this) {
  const VarId old = program_.new_var("old", type_);
  Body body;
  body.push_back(at_launch(
      Atomic{.op = AtomicOp::Add, .to = {counter_, {turns(0)}}, .value = number(1), .compare = {}, .result = old}));
  body.push_back(at_launch(Store{{drawn_, {}}, var(old, type_)}));
  return {at_launch(If{if_this, std::move(body), {at_launch(Store{{drawn_, {}}, number(-1)})}})};
}

Body DrawnTiles::leave(const Expr& turn) const {
  const Expr place = binary(BinaryOp::FloorMod, turn, turns(ahead_ + 1));
  const Expr is_last = binary(BinaryOp::Eq, drawn(), sub(tiles_, number(1)));
  const Atomic reset{
      .op = AtomicOp::Exchange, .to = {counter_, {turns(0)}}, .value = number(0), .compare = {}, .result = {}};
  return {at_launch(Store{{numbers_, {place}}, number_drawn()}), at_launch(If{is_last, {at_launch(reset)}, {}})};
}

Body DrawnTiles::first_numbers() {
  Body body{at_launch(Store{{numbers_, {turns(0)}}, block_})};
  Expr before = constant(boolean, int64_t{1});
  for (int64_t turn = 1; turn < ahead_; ++turn) {
    append(body, draw(before));
    append(body, leave(turns(turn)));
    before = is_a_tile(number_drawn());
  }
  return by_one_thread(std::move(body));
}

Body DrawnTiles::ask(const Expr& number_before) { return by_one_thread(draw(is_a_tile(number_before))); }

Body DrawnTiles::keep(const Expr& turn) { return by_one_thread(leave(add(turn, turns(ahead_)))); }

}  // namespace tilewright::passes
