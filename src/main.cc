#include "cli/commands.h"

int main(int argc, char** argv) {
  return hangar::cli::run(argc, argv);
}
