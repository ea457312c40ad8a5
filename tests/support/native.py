"""The compiler of programs that run on this machine under sanitizers.

clang, because gcc takes twice as long with a kernel's checks, and five times with a large table of constants. What gcc
makes of modules is compiled and run in tests/product/test_compilers.py, test_generated_code.py and by `verify
--emulator host`, whose first choice it is.
"""

COMPILER = "clang"
SANITIZERS = ("-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
