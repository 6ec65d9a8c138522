// Prints and assertions as text of the C family: each is a site with a number, and what it reports are values in 64
// bits, as kernel_abi.text.h has them.
#pragma once
#include "codegen/c_memory.h"

namespace tilewright::codegen {

// A print, an assertion or a wait of the kernel, which reports it by its number.
struct ReportSite {
  enum class Kind : uint8_t { PrintMessage, PrintScalar, PrintBuffer, Assert, Stuck, Overflow };  // runtime::Site's
  struct Operand {
    std::string name;
    DType type;
  };
  Kind kind = Kind::PrintMessage;
  std::string message;
  SourceLocation location;
  std::vector<Operand> operands;
};

class CReports : public CMemory {
 protected:
  using CMemory::CMemory;

  // ---- the target's own: hands values, as texts of 64-bit words, to the host
  virtual void report(int site, bool failed, const std::vector<ir::Expr>& place,
                      const std::vector<std::string>& values) = 0;

  void print(const ir::Print& n, const SourceLocation& at);
  void assertion(const ir::Assert& n, const SourceLocation& at);

  std::vector<ReportSite> sites_;
  void add(ReportSite site, const std::vector<ir::Expr>& place, const std::vector<std::string>& values);

 private:
  std::string word(const ir::Expr& e);
  std::string word(DType type, const std::string& value);
  void print_buffer(const ir::Print& n, const SourceLocation& at);
};

}  // namespace tilewright::codegen
