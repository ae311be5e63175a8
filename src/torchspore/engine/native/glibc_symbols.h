// Included before each native file. libstdc++'s headers read __libc_single_threaded, a symbol of glibc 2.32, to count references without
// atomic instructions; without it a library that is built on a newer system also loads on an older one.
#pragma once
#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
static constexpr char torchspore_is_single_threaded = 0;
#define __libc_single_threaded torchspore_is_single_threaded
#endif
#endif
