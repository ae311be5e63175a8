// Writes each operator that torch's dispatcher runs into memory that another process reads (blackbox/board.py has the layout).
//
// No thread, no lock, no allocation: a fault finds the memory as the last operator left it. Built by observe/debug/native.py.
#include <ATen/record_function.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kSlots = 64, kTensors = 4, kAxes = 6, kRing = 2048;

struct Header {                       // 4096 bytes; the first 64 are Python's
  char python[64];
  std::atomic<uint64_t> entries;      // how many operators were ever written into the ring
  char rest[4024];
};
struct Slot {                         // what one thread runs now
  std::atomic<uint64_t> thread;       // as pthread_self and faulthandler count
  std::atomic<uint64_t> start;        // 0: no operator
  uint64_t last;                      // when its last operator ended
  uint64_t unused;
  char name[96];
};
struct Value {
  uint8_t dtype, device, axes, index;
  uint32_t lengths[kAxes];
  uint32_t unused;
  uint64_t address;
};
struct Entry {
  std::atomic<uint64_t> number;       // written last; 0 while the entry is being written
  uint64_t start, duration;           // duration 0: it has not ended
  uint32_t thread;
  uint8_t values, left_out;
  uint16_t unused;
  char name[48];
  Value value[kTensors];
  char rest[16];
};
struct Board {
  Header header;
  Slot slots[kSlots];
  char marks[kSlots * 256];           // Python's
  Entry ring[kRing];
};
static_assert(sizeof(Header) == 4096 && sizeof(Slot) == 128 && sizeof(Value) == 40 && sizeof(Entry) == 256, "blackbox/board.py");

Board* board = nullptr;
std::atomic<bool> is_on{false};
bool keeps_ring = false;

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

struct Thread {
  Slot* slot = nullptr;
  Entry* entry = nullptr;
  uint64_t number = 0;
  uint64_t start = 0;
  uint32_t id = 0;
  int depth = 0;
  Board* of = nullptr;                // whose slot it is; a forked child that is watched has a board of its own
  void join() {
    of = board;
    slot = nullptr;
    id = uint32_t(syscall(SYS_gettid));
    for (auto& free : board->slots) {
      uint64_t nobody = 0;
      if (free.thread.compare_exchange_strong(nobody, uint64_t(pthread_self()))) { slot = &free; return; }
    }
  }
  ~Thread() {
    if (slot != nullptr && is_on && of == board) { slot->start = 0; slot->thread = 0; }
  }
};
thread_local Thread here;

void describe(Entry& entry, const at::Tensor& tensor) {
  auto* impl = tensor.unsafeGetTensorImpl();
  Value& value = entry.value[entry.values++];
  value.dtype = uint8_t(tensor.scalar_type());
  value.device = uint8_t(tensor.device().type());
  value.index = uint8_t(tensor.device().index());
  value.axes = 255;                   // lengths that are not numbers
  value.address = 0;
  if (impl->has_symbolic_sizes_strides() || impl->is_python_dispatch()) return;
  auto sizes = tensor.sizes();
  value.axes = uint8_t(std::min<size_t>(sizes.size(), 254));
  for (size_t axis = 0; axis < sizes.size() && axis < kAxes; axis++)
    value.lengths[axis] = uint32_t(std::min<int64_t>(sizes[axis], UINT32_MAX));
  if (impl->has_storage()) value.address = uint64_t(impl->unsafe_storage().data());
}

void add(Entry& entry, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  if (entry.values < kTensors) describe(entry, tensor);
  else if (entry.left_out < 255) entry.left_out++;
}

void write(const at::RecordFunction& function) {
  uint64_t number = board->header.entries.fetch_add(1, std::memory_order_relaxed) + 1;
  Entry& entry = board->ring[(number - 1) % kRing];
  entry.number.store(0, std::memory_order_relaxed);
  entry.start = here.start;
  entry.duration = 0;
  entry.thread = here.id;
  entry.values = entry.left_out = 0;
  strncpy(entry.name, function.name(), sizeof(entry.name) - 1);
  for (const auto& input : function.inputs()) {
    if (input.isTensor()) add(entry, input.toTensor());
    else if (input.isTensorList()) for (const at::Tensor& tensor : input.toTensorVector()) add(entry, tensor);
  }
  entry.number.store(number, std::memory_order_release);
  here.entry = &entry;
  here.number = number;
}

// What autograd's engine wraps around the operators of a node is no operator, nor is a stretch that profiling/marks.py names for a trace,
// as torchspore::cell::Default; torchspore's own operators have one pair of colons.
bool is_wrapper(const at::RecordFunction& function) {
  const char* name = function.name();
  if (strncmp(name, "autograd::", 10) == 0) return true;
  return strncmp(name, "torchspore::", 12) == 0 && strstr(name + 12, "::") != nullptr;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (!is_on.load(std::memory_order_relaxed) || is_wrapper(function) || here.depth++ > 0) return nullptr;
  if (here.of != board) here.join();
  here.start = now();
  here.entry = nullptr;
  if (here.slot != nullptr) {
    strncpy(here.slot->name, function.name(), sizeof(here.slot->name) - 1);
    here.slot->start.store(here.start, std::memory_order_release);
  }
  if (keeps_ring) write(function);
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext*) {
  if (here.depth == 0 || is_wrapper(function) || --here.depth > 0 || !is_on.load(std::memory_order_relaxed)) return;
  uint64_t ended = now();
  if (here.slot != nullptr) {
    here.slot->last = ended;
    here.slot->start.store(0, std::memory_order_release);
  }
  if (here.entry != nullptr && here.entry->number.load(std::memory_order_relaxed) == here.number)
    here.entry->duration = std::max<uint64_t>(1, ended - here.start);
}

void in_child() { is_on = false; }    // a forked child shares the memory and must not write into it

at::CallbackHandle handle = 0;
bool is_added = false, follows_forks = false;

}  // namespace

extern "C" uint64_t torchspore_size() { return sizeof(Board); }

extern "C" void torchspore_arm(void* memory, int with_ring) {
  board = static_cast<Board*>(memory);
  keeps_ring = with_ring != 0;
  if (!follows_forks) pthread_atfork(nullptr, nullptr, in_child);
  follows_forks = true;
  is_on = true;
  if (is_added) at::removeCallback(handle);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsInputs(keeps_ring).scopes({at::RecordScope::FUNCTION}));
  is_added = true;
}

extern "C" void torchspore_disarm() {
  is_on = false;
  if (is_added) at::removeCallback(handle);
  is_added = false;
}
