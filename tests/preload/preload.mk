# SPDX-License-Identifier: Apache-2.0
#
# The C programs that run under the preload. DRIVER_BLAS names the CPU library a driver is linked
# with: OpenBLAS, netlib's reference, and the 64-bit OpenBLAS under its plain names.

PRELOAD_OUT := $(BUILD)/tests/preload
PRELOAD_LIBDIR := $(firstword $(wildcard /usr/lib/$(shell $(CC) -print-multiarch)) /usr/lib)
PRELOAD_CFLAGS = $(CFLAGS) -fvisibility=default -pthread

# Debian's own folder of it: elsewhere the name is OpenBLAS's.
NETLIB = -L$(PRELOAD_LIBDIR)/blas -l:libblas.so.3 -Wl,-rpath,$(PRELOAD_LIBDIR)/blas

DRIVER_SOURCES := $(addprefix tests/preload/,gemm_driver.c gemm_special.c gemm_data.c gemm_call.c)
DRIVERS := $(addprefix $(PRELOAD_OUT)/,gemm_driver gemm_driver-netlib gemm_driver64)

$(PRELOAD_OUT)/gemm_driver: DRIVER = -DDRIVER_BLAS=\"libopenblas.so.0\" -l:libopenblas.so.0
$(PRELOAD_OUT)/gemm_driver-netlib: DRIVER = -DDRIVER_BLAS=\"libblas.so.3\" $(NETLIB)
$(PRELOAD_OUT)/gemm_driver64: DRIVER = -DDRIVER_BLAS=\"libopenblas64.so.0\" -DBLAS_INT=int64_t \
	-l:libopenblas64.so.0

$(DRIVERS): $(DRIVER_SOURCES) $(wildcard tests/preload/gemm_*.h)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $(DRIVER_SOURCES) $(DRIVER) -ldl -lm

# The other level-3 routines, and for those that Debian's libraries lack a library of our own. The
# driver looks its names up, so that nothing but the option asks for the library.
LEVEL3_SOURCES := $(addprefix tests/preload/,level3_driver.c level3_sweep.c level3_case.c level3_special.c \
	level3_batch.c level3_expect.c level3_call.c gemm_data.c)
LEVEL3_DRIVERS := $(addprefix $(PRELOAD_OUT)/,level3_driver level3_driver-netlib level3_driver64 \
	level3_driver-own level3_driver-own64)
LEVEL3_STANDARD := symm,hemm,syrk,herk,syr2k,her2k,trmm,trsm
LEVEL3_OWN := gemmt,gemmtr,gemm_batch,gemm_batch_strided

$(PRELOAD_OUT)/level3_driver: LEVEL3 = -DDRIVER_BLAS=\"libopenblas.so.0\" \
	-DDRIVER_FAMILIES=\"gemm3m,$(LEVEL3_STANDARD)\" -l:libopenblas.so.0
$(PRELOAD_OUT)/level3_driver-netlib: LEVEL3 = -DDRIVER_BLAS=\"libblas.so.3\" \
	-DDRIVER_CBLAS_CALLS_F77 -DDRIVER_FAMILIES=\"$(LEVEL3_STANDARD)\" $(NETLIB)
$(PRELOAD_OUT)/level3_driver64: LEVEL3 = -DDRIVER_BLAS=\"libopenblas64.so.0\" \
	-DBLAS_INT=int64_t -DDRIVER_FAMILIES=\"gemm3m,$(LEVEL3_STANDARD)\" -l:libopenblas64.so.0
$(PRELOAD_OUT)/level3_driver-own: LEVEL3 = -DDRIVER_BLAS=\"libown_level3.so\" \
	-DDRIVER_FAMILIES=\"$(LEVEL3_OWN)\" -L$(PRELOAD_OUT) -lown_level3 '-Wl,-rpath,$$ORIGIN'
$(PRELOAD_OUT)/level3_driver-own64: LEVEL3 = -DDRIVER_BLAS=\"libown_level364.so\" \
	-DBLAS_INT=int64_t -DDRIVER_FAMILIES=\"$(LEVEL3_OWN)\" -L$(PRELOAD_OUT) \
	-lown_level364 '-Wl,-rpath,$$ORIGIN'
$(PRELOAD_OUT)/level3_driver-own: $(PRELOAD_OUT)/libown_level3.so
$(PRELOAD_OUT)/level3_driver-own64: $(PRELOAD_OUT)/libown_level364.so

$(LEVEL3_DRIVERS): $(LEVEL3_SOURCES) $(wildcard tests/preload/gemm_*.h tests/preload/level3_*.h)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -rdynamic -Wl,--no-as-needed -o $@ \
	    $(LEVEL3_SOURCES) $(LEVEL3) -ldl -lm

$(PRELOAD_OUT)/level3_threads: $(addprefix tests/preload/,level3_threads.c level3_sweep.c \
		level3_case.c level3_expect.c level3_call.c gemm_data.c) \
		$(wildcard tests/preload/gemm_*.h tests/preload/level3_*.h) tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -DDRIVER_BLAS=\"libopenblas.so.0\" -o $@ \
	    $(filter %.c,$^) -l:libopenblas.so.0 -ldl -lm

# Never instrumented: it stands for other people's.
$(PRELOAD_OUT)/libown_level3.so: OWN_LEVEL3 =
$(PRELOAD_OUT)/libown_level364.so: OWN_LEVEL3 = -DBLAS_INT=int64_t
$(PRELOAD_OUT)/libown_level3.so $(PRELOAD_OUT)/libown_level364.so: tests/preload/own_level3.c \
		tests/preload/own_level3.inc
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -fno-sanitize=all -Wno-missing-prototypes -O2 \
	    $(OWN_LEVEL3) -shared -Wl,-soname,$(@F) -o $@ $< -lm

# Programs of one source, linked with OpenBLAS.
SIMPLE := $(addprefix $(PRELOAD_OUT)/,fork exit threads many wrapped limited quiet)
$(SIMPLE): $(PRELOAD_OUT)/%: tests/preload/%.c tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $< -l:libopenblas.so.0 -ldl -lm

# OpenBLAS takes its memory away at exit, from under threads that still compute; netlib's reference
# has nothing to take away.
SIMPLE_NETLIB := $(addprefix $(PRELOAD_OUT)/,exit-netlib)
$(SIMPLE_NETLIB): $(PRELOAD_OUT)/%-netlib: tests/preload/%.c tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $< $(NETLIB) -ldl -lm

# A program with a wrapper of its own: what stands in front of a preload.
$(PRELOAD_OUT)/wrapped-own: tests/preload/wrapped.c tests/preload/wrap.c tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -Wno-missing-prototypes -rdynamic -o $@ \
	    $(filter %.c,$^) -Wl,--no-as-needed -l:libopenblas.so.0 -ldl -lm

# Their xerbla_ is the one that the library calls.
GUARDS := $(addprefix $(PRELOAD_OUT)/,guard guard-netlib)
$(PRELOAD_OUT)/guard: GUARD_BLAS = -l:libopenblas.so.0
$(PRELOAD_OUT)/guard-netlib: GUARD_BLAS = $(NETLIB)
$(GUARDS): tests/preload/guard.c tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -rdynamic -o $@ $< $(GUARD_BLAS) -lm

ILLEGALS := $(addprefix $(PRELOAD_OUT)/,illegal illegal-netlib)
$(PRELOAD_OUT)/illegal: ILLEGAL_BLAS = -l:libopenblas.so.0
$(PRELOAD_OUT)/illegal-netlib: ILLEGAL_BLAS = $(NETLIB)
$(ILLEGALS): tests/preload/illegal.c tests/preload/gemm_call.c tests/preload/gemm_call.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $(filter %.c,$^) $(ILLEGAL_BLAS)

# Libraries of BLAS names with a mind of their own, and what is linked with them. They are never
# instrumented: they stand for other people's.
OWN_CFLAGS = $(PRELOAD_CFLAGS) -fno-sanitize=all -Wno-missing-prototypes
$(PRELOAD_OUT)/libnested_blas.so $(PRELOAD_OUT)/libwrap.so: \
		$(PRELOAD_OUT)/lib%.so: tests/preload/%.c tests/preload/own_blas.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) -shared -o $@ $< -ldl
# A second wrapper, whose last call is no jump.
$(PRELOAD_OUT)/libwrap2.so: tests/preload/wrap.c tests/preload/own_blas.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) -fno-optimize-sibling-calls -Dwrap_calls=wrap2_calls \
	    -shared -o $@ $< -ldl
$(PRELOAD_OUT)/libthrowing_blas.so: tests/preload/throwing_blas.cc tests/preload/own_blas.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CXX) -O2 -g -fPIC -shared -o $@ $<
$(PRELOAD_OUT)/exceptions: tests/preload/exceptions.cc $(PRELOAD_OUT)/libthrowing_blas.so
	@echo "  LD    $@"
	$(Q)$(CXX) -O2 -g -fPIC $(if $(SAN),-fsanitize=$(SAN)) -o $@ $< -L$(@D) -lthrowing_blas \
	    '-Wl,-rpath,$$ORIGIN'
$(PRELOAD_OUT)/nested: tests/preload/nested.c $(PRELOAD_OUT)/libnested_blas.so \
		tests/preload/product.h
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $< -L$(@D) -lnested_blas \
	    '-Wl,-rpath,$$ORIGIN' -lm

# Two plugins with a BLAS each, under the same names, in different widths.
PLUGINS := $(addprefix $(PRELOAD_OUT)/,plugin.so plugin-netlib.so plugin64.so)
$(PRELOAD_OUT)/plugin.so: PLUGIN = -l:libopenblas.so.0
$(PRELOAD_OUT)/plugin-netlib.so: PLUGIN = $(NETLIB)
$(PRELOAD_OUT)/plugin64.so: PLUGIN = -DBLAS_INT=int64_t -l:libopenblas64.so.0
$(PLUGINS): tests/preload/plugin.c tests/preload/gemm_call.c tests/preload/gemm_call.h \
		tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -fvisibility=hidden -shared -o $@ $(filter %.c,$^) \
	    $(PLUGIN) -lm
$(PRELOAD_OUT)/host: tests/preload/host.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $< -ldl

$(PRELOAD_OUT)/missing: tests/preload/missing.c tests/preload/missing_blas.c
	@mkdir -p $(@D)/link
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) -DWHOLE -shared -Wl,-soname,libmissing_blas.so \
	    -o $(@D)/link/libmissing_blas.so tests/preload/missing_blas.c
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) -shared -Wl,-soname,libmissing_blas.so \
	    -o $(@D)/libmissing_blas.so tests/preload/missing_blas.c
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -fno-pic -no-pie -fplt -Wl,-z,lazy -o $@ $< \
	    -L$(@D)/link -lmissing_blas '-Wl,-rpath,$$ORIGIN'

# Linked with the library itself: loaded in processes that ignore LD_PRELOAD, too.
$(PRELOAD_OUT)/linked: tests/preload/many.c $(BUILD)/libgpushim.so tests/preload/product.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(PRELOAD_CFLAGS) -o $@ $< -Wl,--no-as-needed \
	    -L$(BUILD) -lgpushim -Wl,-rpath,$(abspath $(BUILD)) -l:libopenblas.so.0 -lm

.PHONY: preload-tests
preload-tests: $(DRIVERS) $(LEVEL3_DRIVERS) $(PRELOAD_OUT)/level3_threads $(SIMPLE) \
	$(SIMPLE_NETLIB) $(GUARDS) $(ILLEGALS) $(PLUGINS) \
	$(addprefix $(PRELOAD_OUT)/,wrapped-own libwrap.so libwrap2.so exceptions nested host missing linked)
