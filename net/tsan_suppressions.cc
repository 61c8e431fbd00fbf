// ThreadSanitizer's default suppressions for every program that has this library in it.
// Debian's libzmq is not instrumented, so the checker does not see how libzmq's threads hand messages over.
// What libzmq itself calls (memcpy, send, recv, free) is therefore left out; our own code stays checked.

#ifdef __SANITIZE_THREAD__

extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so\n"; }

#endif
