"""The part of rules_cc that Debian's Bazel 4.2.3 and its bundled rules load, from the native rules."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_profile = native.fdo_profile
fdo_prefetch_hints = native.fdo_prefetch_hints
objc_library = native.objc_library
objc_import = native.objc_import
cc_toolchain_alias = None
cc_flags_supplier = None
compiler_flag = None
