// Prints the programs of the C++ examples, so that the tests of the Python frontend can compare theirs with them.
#include <cstdio>

#include "example.h"

int main() {
  for (const examples::Example& example : examples::all_examples())
    for (const examples::Case& c : example.cases(examples::Size::Odd))
      std::printf("### %s %s\n%s", example.name, c.shape.c_str(), c.program.text().c_str());
  return 0;
}
