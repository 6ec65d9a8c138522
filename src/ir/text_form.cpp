#include "ir/text_form.h"

namespace tilewright::ir {

Precedence precedence_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Or: return kOrPrecedence;
    case BinaryOp::And: return kAndPrecedence;
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le: return kComparePrecedence;
    case BinaryOp::BitOr: return kBitOrPrecedence;
    case BinaryOp::BitXor: return kBitXorPrecedence;
    case BinaryOp::BitAnd: return kBitAndPrecedence;
    case BinaryOp::Shl:
    case BinaryOp::Shr: return kShiftPrecedence;
    case BinaryOp::Add:
    case BinaryOp::Sub: return kAddPrecedence;
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod: return kMulPrecedence;
    case BinaryOp::TruncDiv:
    case BinaryOp::TruncMod:
    case BinaryOp::Min:
    case BinaryOp::Max:
    case BinaryOp::MinNan:
    case BinaryOp::MaxNan: return kPrimaryPrecedence;
  }
  return kPrimaryPrecedence;
}

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string name_text(std::string_view name) {
  static constexpr std::string_view kWords[] = {"and", "or", "not", "true", "false", "inf", "nan"};
  const bool plain = !name.empty() && is_name_start(name[0]) && std::all_of(name.begin(), name.end(), is_name_part) &&
                     std::find(std::begin(kWords), std::end(kWords), name) == std::end(kWords);
  return plain ? std::string(name) : quoted(name, '`');
}

}  // namespace tilewright::ir
