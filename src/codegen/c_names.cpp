#include "codegen/c_names.h"

#include <fmt/format.h>

#include <cctype>

namespace tilewright::codegen {

namespace {

const std::set<std::string>& words() {
  static const std::set<std::string> set = {"alignas",
                                            "alignof",
                                            "and",
                                            "and_eq",
                                            "asm",
                                            "auto",
                                            "bitand",
                                            "bitor",
                                            "bool",
                                            "break",
                                            "case",
                                            "catch",
                                            "char",
                                            "char16_t",
                                            "char32_t",
                                            "class",
                                            "compl",
                                            "const",
                                            "constexpr",
                                            "const_cast",
                                            "continue",
                                            "decltype",
                                            "default",
                                            "delete",
                                            "do",
                                            "double",
                                            "else",
                                            "enum",
                                            "explicit",
                                            "dynamic_cast",
                                            "export",
                                            "extern",
                                            "false",
                                            "float",
                                            "for",
                                            "friend",
                                            "goto",
                                            "if",
                                            "inline",
                                            "int",
                                            "linux",
                                            "long",
                                            "mutable",
                                            "namespace",
                                            "new",
                                            "noexcept",
                                            "not",
                                            "not_eq",
                                            "nullptr",
                                            "operator",
                                            "or",
                                            "or_eq",
                                            "private",
                                            "protected",
                                            "public",
                                            "register",
                                            "return",
                                            "short",
                                            "signed",
                                            "sizeof",
                                            "static",
                                            "static_assert",
                                            "static_cast",
                                            "struct",
                                            "switch",
                                            "template",
                                            "this",
                                            "throw",
                                            "true",
                                            "thread_local",
                                            "try",
                                            "typedef",
                                            "typeid",
                                            "typename",
                                            "union",
                                            "unix",
                                            "unsigned",
                                            "using",
                                            "virtual",
                                            "void",
                                            "volatile",
                                            "wchar_t",
                                            "while",
                                            "xor",
                                            "xor_eq",
                                            "call",
                                            "failed",
                                            "main",
                                            "reinterpret_cast"};
  return set;
}

// Letters, digits and single underscores, beginning with a letter.
std::string identifier(const std::string& wish) {
  std::string out;
  for (char c : wish) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "v" + out;
  return out;
}

}  // namespace

std::string Names::fresh(const std::string& wish) {
  std::string base = identifier(wish);
  if (base.starts_with("tw_") || base.starts_with("gemm_")) base = "v_" + base;  // what stands beside user code
  std::string name = base;
  for (int n = 1; reserved_.contains(name) || words().contains(name) || visible_.contains(name); ++n)
    name = fmt::format("{}_{}", base, n);
  visible_.insert(name);
  scopes_.back().insert(name);
  return name;
}

void Names::close() {
  for (const std::string& name : scopes_.back()) visible_.erase(name);
  scopes_.pop_back();
}

}  // namespace tilewright::codegen
