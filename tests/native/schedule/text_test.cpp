// Text tests of the schedule: tests/ir/schedule/*.test hold CIR, a line `---`, and the schedule with its
// memory plan. CUVIL_UPDATE_TESTS=1 writes what is made now into the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ops/op.h"
#include "schedule/program.h"

namespace cuvil::schedule {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& p) {
  std::ifstream in(p);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct Built {
  std::unique_ptr<ir::Graph> graph;
  std::unique_ptr<Program> program;
};

Built build(const std::string& text) {
  Built b;
  auto graph = ir::parse(text, ops::find_desc);
  EXPECT_TRUE(graph.ok()) << graph.error().found;
  if (!graph.ok()) return b;
  b.graph = std::move(*graph);
  auto valid = ir::verify(*b.graph);
  EXPECT_TRUE(valid.ok()) << valid.error().found;
  auto program = build_program(*b.graph);
  EXPECT_TRUE(program.ok()) << program.error().found;
  if (program.ok()) b.program = std::move(*program);
  return b;
}

class ScheduleText : public testing::TestWithParam<fs::path> {};

TEST_P(ScheduleText, GivesWhatTheFileSays) {
  const std::string text = read(GetParam());
  const size_t split = text.find("---\n");
  ASSERT_NE(split, std::string::npos) << "no line ---";
  Built b = build(text.substr(0, split));
  ASSERT_TRUE(b.program);
  auto valid = validate_plan(*b.program);
  EXPECT_TRUE(valid.ok()) << valid.error().found;
  const std::string got = print_schedule(*b.program) + print_memory_plan(*b.program);
  if (std::getenv("CUVIL_UPDATE_TESTS")) {
    std::ofstream(GetParam()) << text.substr(0, split) << "---\n" << got;
    return;
  }
  EXPECT_EQ(got, text.substr(split + 4));
}

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& e : fs::directory_iterator(fs::path(CUVIL_TESTS_DIR) / "ir" / "schedule"))
    if (e.path().extension() == ".test") out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, ScheduleText, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

// The validator shares nothing with the planner: it must see each kind of wrong plan.
class BrokenPlan : public testing::Test {
 protected:
  void SetUp() override {
    built = build(
        "func @f(%x: f32[32, 32] input(0), %w: f32[32, 32] input(1)) {\n"
        "  %0 = matmul %x, %w : f32[32, 32]\n"
        "  %1 = matmul %0, %w : f32[32, 32]\n"
        "  %2 = matmul %1, %0 : f32[32, 32]\n"
        "  return %2 array\n}\n");
    ASSERT_TRUE(built.program);
    for (Buffer& b : built.program->buffers)
      if (b.scope == MemoryScope::kArena) arena.push_back(&b);
    ASSERT_GE(arena.size(), 2u);
    ASSERT_TRUE(validate_plan(*built.program).ok());
  }
  Built built;
  std::vector<Buffer*> arena;
};

TEST_F(BrokenPlan, TwoLiveBuffersInOnePlace) {
  arena[1]->offset = arena[0]->offset;
  EXPECT_FALSE(validate_plan(*built.program).ok());
}
TEST_F(BrokenPlan, OverlapByALittle) {
  arena[1]->offset = arena[0]->offset + 32 * 32 * 4 - 64;
  EXPECT_FALSE(validate_plan(*built.program).ok());
}
TEST_F(BrokenPlan, BeyondTheArena) {
  arena[1]->offset = built.program->memory.arena_bytes;
  EXPECT_FALSE(validate_plan(*built.program).ok());
}
TEST_F(BrokenPlan, Misaligned) {
  arena[0]->offset += 2;
  built.program->memory.arena_bytes += 1 << 16;
  arena[1]->offset = 1 << 15;
  EXPECT_FALSE(validate_plan(*built.program).ok());
}

}  // namespace
}  // namespace cuvil::schedule
