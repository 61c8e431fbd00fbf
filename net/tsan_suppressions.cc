// The default suppressions of ThreadSanitizer for every program that links this library. Debian's libzmq is
// not instrumented, so ThreadSanitizer does not see how its threads pass messages to each other. Calls from
// libzmq (memcpy, send, recv, free), and from libsodium, with which it decrypts them, are suppressed; our own
// code stays checked.

#ifdef __SANITIZE_THREAD__

extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\n";
}

#endif
