// The default suppressions of ThreadSanitizer for every program that links base. Debian's libzmq, libsodium
// (with which libzmq decrypts) and OpenBLAS are not instrumented, so ThreadSanitizer does not see how their
// threads pass messages and blocks to each other. Calls from them (memcpy, memset, send, recv, free) are
// suppressed; our own code stays checked. OpenBLAS has two executable segments, which ends a program with
// called_from_lib; its reports are suppressed by its name on their stacks. Nor is libstdc++, which counts who
// holds an exception: it looks as if the last holder frees what another thread still reads.

#ifdef __SANITIZE_THREAD__

extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\nrace:libopenblas.so\n"
         "race:std::__exception_ptr::exception_ptr::_M_release\n";
}

#endif
