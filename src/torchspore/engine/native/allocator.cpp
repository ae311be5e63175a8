// Counts the memory that torch takes on the CPU, and refuses what goes beyond a limit. Built by engine/native/native_build.py.
//
// It stands before the allocator that was there and hands everything on. Each block knows the operator that asked for it, and counts as
// one kind of memory: see engine/native/allocator.py, which reads this memory and has the same layout.
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

enum Kind : uint8_t { kActivation, kGradient, kWorkspace, kParameter, kState, kKinds };
constexpr int kAxes = 6, kUnknown = 255;

struct Block {
  uint64_t address, size, number, operation;
  uint8_t kind, dtype, axes, unused;
  uint32_t lengths[kAxes];
  char name[44];
};
static_assert(sizeof(Block) == 104, "engine/native/allocator.py");

struct Figures {
  uint64_t held, peak, blocks, number, limit, refusals, kinds[kKinds], peaks[kKinds];
};
struct Refusal {
  uint64_t number, asked, held, limit;
  char name[48];
};
constexpr uint64_t kKept = 4;           // refusals that are kept, for threads that are refused at the same time
struct Kept {
  Refusal refusal;
  std::vector<Block> holders;
};

// Tensors are freed until the very end of a process, so that none of this is ever taken down.
std::mutex& lock = *new std::mutex;
std::unordered_map<void*, Block>& blocks = *new std::unordered_map<void*, Block>;
Kept* kept = new Kept[kKept]();
std::string& limit_name = *new std::string;
Figures now{};
uint64_t peak_number = 0;
c10::Allocator* inner = nullptr;
std::atomic<uint64_t> operations{0};
std::atomic<bool> is_on{false};

struct Thread {
  uint64_t operation;
  int depth, backward;
  int aside;
  uint8_t kind;
  char name[44];
};
thread_local Thread here{};

std::string shown(uint64_t bytes) {
  char text[32];
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) { value /= 1024; unit++; }
  snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

void refuse(uint64_t size) {            // holds the lock
  Kept& own = kept[++now.refusals % kKept];
  Refusal& refusal = own.refusal;
  refusal = Refusal{};
  refusal.number = now.refusals;
  refusal.asked = size;
  refusal.held = now.held;
  refusal.limit = now.limit;
  strncpy(refusal.name, here.depth > 0 ? here.name : "", sizeof(refusal.name) - 1);
  own.holders.clear();
  own.holders.reserve(blocks.size());
  for (const auto& [address, block] : blocks) own.holders.push_back(block);
}

void count(uint64_t size) {
  std::string text;
  {
    std::lock_guard<std::mutex> held(lock);
    if (now.limit == 0 || (size <= now.limit && now.held <= now.limit - size)) {
      now.held += size;
      return;
    }
    refuse(size);
    text = limit_name + ": out of memory: tried to allocate " + shown(size) + ", and " + shown(now.held) + " of " + shown(now.limit) +
           " are held (refusal " + std::to_string(now.refusals) + ")";
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
}

void discount(uint64_t size) {
  std::lock_guard<std::mutex> held(lock);
  now.held -= size;
}

// Moves what was counted as one kind to another, also in the figures of the peak where the block was there then.
void move(Block& block, uint8_t kind) {
  now.kinds[block.kind] -= block.size;
  now.kinds[kind] += block.size;
  if (block.number <= peak_number) {
    now.peaks[block.kind] -= block.size;
    now.peaks[kind] += block.size;
  }
  block.kind = kind;
}

void forget(std::unordered_map<void*, Block>::iterator found) {      // holds the lock
  now.kinds[found->second.kind] -= found->second.size;
  now.held -= found->second.size;
  now.blocks--;
  blocks.erase(found);
}

void enter(void* address, uint64_t size) {
  Block block{};
  block.address = uint64_t(address);
  block.size = size;
  block.kind = here.kind ? here.kind - 1 : here.backward > 0 ? kGradient : kActivation;
  block.dtype = block.axes = kUnknown;
  if (here.depth > 0) {
    block.operation = here.operation;
    memcpy(block.name, here.name, sizeof(block.name));
  }
  std::lock_guard<std::mutex> held(lock);
  auto before = blocks.find(address);   // freed behind our back, while nothing was counted
  if (before != blocks.end()) forget(before);
  block.number = ++now.number;
  now.blocks++;
  now.kinds[block.kind] += size;
  blocks[address] = block;
  if (now.held > now.peak) {
    now.peak = now.held;
    peak_number = now.number;
    memcpy(now.peaks, now.kinds, sizeof(now.peaks));
  }
}

void leave(void* address) {
  std::lock_guard<std::mutex> held(lock);
  auto found = blocks.find(address);
  if (found == blocks.end()) return;
  Block& block = found->second;
  if (here.depth > 0 && block.operation == here.operation && block.kind < kWorkspace) move(block, kWorkspace);
  forget(found);
}

void release(void* address) {
  if (address == nullptr) return;
  leave(address);
  inner->raw_deleter()(address);
}

struct Counting final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    if (here.aside > 0) return inner->allocate(size);
    count(size);
    void* address = nullptr;
    try {
      address = inner->raw_allocate(size);
      enter(address, size);
    } catch (...) {
      discount(size);
      throw;
    }
    return {address, address, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override { default_copy_data(to, from, size); }
};
Counting& allocator = *new Counting;

bool is_wrapper(const at::RecordFunction& function) { return strncmp(function.name(), "autograd::", 10) == 0; }

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) { here.backward++; return nullptr; }
  if (is_wrapper(function) || here.depth++ > 0) return nullptr;
  here.operation = ++operations;
  strncpy(here.name, function.name(), sizeof(here.name) - 1);
  return nullptr;
}

void describe(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  auto* impl = tensor.unsafeGetTensorImpl();
  if (impl->has_symbolic_sizes_strides() || impl->is_python_dispatch()) return;
  std::lock_guard<std::mutex> held(lock);
  auto found = blocks.find(const_cast<void*>(impl->unsafe_storage().data()));
  if (found == blocks.end() || found->second.operation != here.operation) return;
  auto sizes = tensor.sizes();
  found->second.dtype = uint8_t(tensor.scalar_type());
  found->second.axes = uint8_t(std::min<size_t>(sizes.size(), kUnknown - 1));
  for (size_t axis = 0; axis < sizes.size() && axis < kAxes; axis++)
    found->second.lengths[axis] = uint32_t(std::min<int64_t>(sizes[axis], UINT32_MAX));
}

void end(const at::RecordFunction& function, at::ObserverContext*) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) { if (here.backward > 0) here.backward--; return; }
  if (here.depth == 0 || is_wrapper(function) || --here.depth > 0) return;
  for (const auto& output : function.outputs()) {
    if (output.isTensor()) describe(output.toTensor());
    else if (output.isTensorList()) for (const at::Tensor& tensor : output.toTensorVector()) describe(tensor);
  }
}

uint64_t give(std::vector<Block>& found, Block* rows, uint64_t most) {
  uint64_t given = std::min<uint64_t>(most, found.size());
  std::partial_sort(found.begin(), found.begin() + given, found.end(),
                    [](const Block& a, const Block& b) { return a.size > b.size || (a.size == b.size && a.number < b.number); });
  memcpy(rows, found.data(), given * sizeof(Block));
  return found.size();
}

// A forked child goes on with what it has: nobody may hold the lock while the process is copied.
void before_fork() { lock.lock(); }
void after_fork() { lock.unlock(); }

at::CallbackHandle handle = 0;
bool follows_forks = false;

}  // namespace

extern "C" {

uint64_t torchspore_memory_sizes() { return sizeof(Block) << 32 | sizeof(Figures) << 16 | sizeof(Refusal); }

// Counts from now on; false where the allocator that is there hands out what can't be followed.
bool torchspore_memory_on() {
  if (is_on) return true;
  if (inner == nullptr) {
    c10::Allocator* found = c10::GetCPUAllocator();
    if (found->raw_deleter() == nullptr) return false;
    inner = found;
  }
  if (!follows_forks) pthread_atfork(before_fork, after_fork, after_fork);
  follows_forks = true;
  c10::SetCPUAllocator(&allocator, 255);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsOutputs(true).scopes(
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  is_on = true;
  return true;
}

// What was taken until now is still followed until it is free.
void torchspore_memory_off() {
  if (!is_on) return;
  c10::SetCPUAllocator(inner, 255);
  at::removeCallback(handle);
  is_on = false;
}

void torchspore_memory_limit(uint64_t bytes, const char* name) {
  std::lock_guard<std::mutex> held(lock);
  now.limit = bytes;
  limit_name = name;
}

void torchspore_memory_figures(Figures* out) {
  std::lock_guard<std::mutex> held(lock);
  *out = now;
}

void torchspore_memory_reset_peak() {
  std::lock_guard<std::mutex> held(lock);
  now.peak = now.held;
  peak_number = now.number;
  memcpy(now.peaks, now.kinds, sizeof(now.peaks));
}

// Says what a block is; false where it is none of ours.
bool torchspore_memory_mark(uint64_t address, uint8_t kind) {
  std::lock_guard<std::mutex> held(lock);
  auto found = blocks.find(reinterpret_cast<void*>(address));
  if (found == blocks.end() || kind >= kKinds) return false;
  move(found->second, kind);
  return true;
}

// A value that takes the place of a Parameter's or an optimizer's counts as that.
void torchspore_memory_follow(uint64_t before, uint64_t address) {
  std::lock_guard<std::mutex> held(lock);
  auto old = blocks.find(reinterpret_cast<void*>(before)), found = blocks.find(reinterpret_cast<void*>(address));
  if (old != blocks.end() && found != blocks.end() && old->second.kind >= kParameter) move(found->second, old->second.kind);
}

// What this thread takes from now on counts as `kind`; kKinds leaves it to where it is taken.
void torchspore_memory_phase(uint8_t kind) { here.kind = kind >= kKinds ? 0 : kind + 1; }

// Between a call with 1 and one with -1 this thread's memory is not counted.
void torchspore_memory_aside(int change) { here.aside += change; }

// The refusal of this number, else the last one, and the blocks that were held then: up to `most` of them, the largest first. Gives how
// many there were.
uint64_t torchspore_memory_refusal(uint64_t number, Refusal* out, Block* rows, uint64_t most) {
  std::lock_guard<std::mutex> held(lock);
  Kept& found = kept[number % kKept].refusal.number == number ? kept[number % kKept] : kept[now.refusals % kKept];
  *out = found.refusal;
  return give(found.holders, rows, most);
}

// The blocks of now, the largest first.
uint64_t torchspore_memory_blocks(Block* rows, uint64_t most) {
  std::lock_guard<std::mutex> held(lock);
  std::vector<Block> found;
  found.reserve(blocks.size());
  for (const auto& [address, block] : blocks) found.push_back(block);
  return give(found, rows, most);
}

}  // extern "C"
