// What torch asks of a device from C++: its number, the current stream of a thread, and the events of torch.autograd.
// torch has a guard that asks Python for the device, but it asks while an error of a gradient is raised, and the process ends.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>

namespace {

constexpr auto kind = c10::DeviceType::PrivateUse1;
thread_local int device = 0;
thread_local int64_t stream = 0;
std::atomic<int64_t> events{0};

// Python's notes of events: (event, stream, 0) records an event behind the work of a stream, (event, stream, 1) lets a stream wait for it,
// (event, 0, 2) releases it.
using Note = void (*)(int64_t event, int64_t stream, int action);
Note note = nullptr;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kind; }
  c10::Device exchangeDevice(c10::Device next) const override {
    c10::Device before = getDevice();
    device = next.index() < 0 ? device : next.index();
    return before;
  }
  c10::Device getDevice() const override { return {kind, static_cast<c10::DeviceIndex>(device)}; }
  void setDevice(c10::Device next) const override { exchangeDevice(next); }
  void uncheckedSetDevice(c10::Device next) const noexcept override { device = next.index() < 0 ? device : next.index(); }
  c10::Stream getStream(c10::Device of) const override { return c10::Stream(c10::Stream::UNSAFE, numbered(of), stream); }
  c10::Stream getDefaultStream(c10::Device of) const override { return c10::Stream(c10::Stream::UNSAFE, numbered(of), 0); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    c10::Stream before = getStream(next.device());
    stream = next.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
  void record(void** event, const c10::Stream& on, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = reinterpret_cast<void*>(++events);
    if (note) note(reinterpret_cast<int64_t>(*event), on.id(), 0);
  }
  void block(void* event, const c10::Stream& on) const override {
    if (note && event) note(reinterpret_cast<int64_t>(event), on.id(), 1);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (note && event) note(reinterpret_cast<int64_t>(event), 0, 2);
  }
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}

 private:
  static c10::Device numbered(c10::Device of) { return {kind, static_cast<c10::DeviceIndex>(of.index() < 0 ? device : of.index())}; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace

extern "C" {
int64_t stand_in_stream() { return stream; }
void stand_in_set_stream(int64_t next) { stream = next; }
void stand_in_follow_events(Note next) { note = next; }
}
