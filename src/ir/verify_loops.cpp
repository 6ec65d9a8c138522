// Rules of statements that only loop programs have.
#include "ir/joins.h"
#include "ir/operators.h"
#include "ir/verify_rules.h"

namespace tilewright::ir {
namespace {

constexpr int64_t kLine = 64;   // bytes
constexpr int64_t kBlock = 16;  // rows of the largest square that is transposed in registers

}  // namespace

void Verifier::check_address(const Expr& e, const char* what) {
  if (check_value(e, what) && !e->type.is_pointer())
    add(Code::VerifyLoopStatement, fmt::format("{} is {}; it is an address", what, e->type.name()));
}

void Verifier::check(const Stream& node) {
  const bool from = check_tile(node.from, "the row of a stream", false),
             to = check_tile(node.to, "the destination of a stream", true);
  check_condition(node.large, "large of a stream");
  check_integer(node.done, "done of a stream");
  if (node.rest) check_integer(node.rest, "the rest of a stream");
  if (!from || !to) return;
  const Buffer &source = row(node.from.buffer), &target = row(node.to.buffer);
  if (source.space != Space::Local || source.rank() != 1 || source.type != target.type || source.type.is_packed() ||
      row(program_.root(node.to.buffer)).space != Space::Global || target.rank() == 0)
    return add(Code::VerifyLoopStatement,
               fmt::format("stream from the {} buffer '{}' of {} to the {} buffer '{}' of {}", name_of(source.space),
                           source.name, source.type.name(), name_of(target.space), target.name, target.type.name()),
               "it takes a local row to a tensor of its type");
  const int64_t size = source.type.storage_bits() / 8;
  const auto elements = constant_int(source.shape[0]), chunk = constant_int(node.to.extent.back());
  const bool fits = chunk && *chunk * size % kLine == 0 && *chunk * size + kLine <= elements.value_or(0) * size;
  if (!node.rest && !fits)
    add(Code::VerifyLoopStatement,
        fmt::format("stream of {} elements of {} bytes from a row of {}", text(node.to.extent.back()), size,
                    elements.value_or(0)),
        "a chunk is whole lines of 64 bytes, and the row has another before them");
}

bool Verifier::check_matrix(const Matrix& matrix, const char* what) {
  if (!check_element(matrix.first, what)) return false;
  const auto rank = static_cast<int64_t>(row(matrix.first.buffer).rank());
  const bool good = matrix.down >= 0 && matrix.down < rank && matrix.along >= 0 && matrix.along < rank &&
                    matrix.down_step > 0 && matrix.along_step > 0;
  if (!good)
    add_about(Code::VerifyLoopStatement, matrix.first.buffer,
              fmt::format("{}: steps of {} in dimension {} and of {} in dimension {} of '{}'", what, matrix.down_step,
                          matrix.down, matrix.along_step, matrix.along, name(matrix.first.buffer)),
              "its rows and columns follow a dimension each, by 1 or more");
  return good;
}

void Verifier::check(const Transpose& node) {
  const bool from = check_matrix(node.from, "the source of a transpose"),
             to = check_matrix(node.to, "the destination of a transpose");
  check_condition(node.large, "large of a transpose");
  if (node.next.valid()) check_element(node.next, "the next matrix of a transpose");
  if (!from || !to) return;
  if (node.rows <= 0 || node.columns <= 0 || node.rows % kBlock != 0 || node.columns % kBlock != 0)
    add(Code::VerifyLoopStatement, fmt::format("transpose to {} rows of {} columns", node.rows, node.columns),
        "both are multiples of 16");
  const Buffer &source = row(node.from.first.buffer), &target = row(node.to.first.buffer);
  const int64_t bits = source.type.storage_bits() * node.unit;
  if (source.type != target.type || source.type.is_packed() || (node.unit != 1 && node.unit != 2) || bits > 64)
    add(Code::VerifyLoopStatement,
        fmt::format("transpose of {} times {} to {}", node.unit, source.type.name(), target.type.name()),
        "it takes elements of one type, or pairs of them, of 8 to 64 bits");
}

void Verifier::check(const Prefetch& node) {
  check_address(node.address, "the address of a prefetch");
  check_integer(node.offset, "the offset of a prefetch");
  if (node.bytes <= 0) add(Code::VerifyLoopStatement, fmt::format("prefetch of {} bytes", node.bytes));
}

void Verifier::check_next(const RowsAhead& next) {
  if (!next.present() && !next.first && !next.second) return;
  if (level_ != Level::Loop) return add(Code::VerifyLevel, "the next rows of a gemm are legal in loop programs alone");
  check_address(next.first, "the first of the next rows");
  check_address(next.second, "the second of the next rows");
  if (next.bytes <= 0 || next.rows <= 0)
    add(Code::VerifyLoopStatement, fmt::format("a gemm with {} next rows of {} bytes", next.rows, next.bytes));
}

bool Verifier::check_lanes(BufferId id, int64_t lanes, const char* what) {
  if (!use(id)) return false;
  const Buffer& b = row(id);
  const bool good = b.space == Space::Local && b.rank() == 1 && !b.type.is_packed() && !b.is_view() &&
                    b.strides.empty() && constant_int(b.shape[0]).value_or(0) >= lanes && lanes > 0;
  if (!good)
    add_about(Code::VerifyLoopStatement, id, fmt::format("{} of {} lanes of '{}'", what, lanes, b.name),
              "they are a local array");
  return good;
}

void Verifier::check(const Fold& node) {
  if (node.half <= 0 || !std::has_single_bit(static_cast<uint64_t>(node.half)))
    return add(Code::VerifyLoopStatement, fmt::format("fold by a half of {}; it is a power of two", node.half));
  if (!check_lanes(node.lanes, 2 * node.half, "fold") || !check_value(node.value, "the value of a fold")) return;
  const DType type = row(node.lanes).type;
  const Expr low = load(node.lanes, {constant(i64, int64_t{0})}, type),
             high = load(node.lanes, {constant(i64, node.half)}, type);
  if (node.value->type != type || !joins_in_vectors(node.value, low, high))
    add(Code::VerifyLoopStatement, fmt::format("fold by {}", text(node.value)),
        "it joins lane 0 and the lane `half` by operators that vectors have");
}

void Verifier::check(const RowScan& node) {
  const bool from = check_matrix(node.from, "the source of a row_scan"),
             to = check_matrix(node.to, "the destination of a row_scan"),
             total = check_lanes(node.total, node.rows, "row_scan"),
             value = check_value(node.value, "the value of a row_scan");
  if (!check_integer(node.count, "the count of a row_scan") || !from || !to || !total || !value) return;
  const DType type = row(node.total).type;
  const Expr so_far = load(node.total, {constant(i64, int64_t{0})}, type),
             next = load(node.from.first.buffer, node.from.first.indices, type);
  if (row(node.from.first.buffer).type != type || row(node.to.first.buffer).type != type)
    return add(Code::VerifyLoopStatement,
               fmt::format("row_scan of {} to {} in {}", row(node.from.first.buffer).type.name(),
                           row(node.to.first.buffer).type.name(), type.name()),
               "all three have one type");
  if (node.value->type != type || !joins_in_vectors(node.value, so_far, next))
    add(Code::VerifyLoopStatement, fmt::format("row_scan by {}", text(node.value)),
        "it joins the total of row 0 and the first element by operators that vectors have");
}

}  // namespace tilewright::ir
