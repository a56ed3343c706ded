# SPDX-License-Identifier: Apache-2.0
#
#   make            build/libgpushim.so
#   make demo       a real program under the preload, and where each call ran
#   make check      all tests (check-long: the slow campaigns too)
#   DEBUG=1         -Og -g -Werror       SAN=address,undefined  SAN=thread       V=1  show commands

BUILD := build
VERSION := $(shell cat VERSION)
CC ?= gcc
SAN ?=
DEBUG ?=
V ?=
Q := $(if $(V),,@)

comma := ,
ifneq ($(SAN),) # a folder of its own
BUILD := build-$(firstword $(subst $(comma), ,$(SAN)))
endif

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion \
            -Wno-sign-conversion -Wvla
OPTIMISE := $(if $(DEBUG),-Og -Werror,-O2)
# Unwind tables: C++ exceptions and longjmp leave through our frames.
CFLAGS := -std=gnu11 -g $(OPTIMISE) $(WARNINGS) -fPIC -fvisibility=hidden -fexceptions \
          -fasynchronous-unwind-tables -ftls-model=initial-exec -fno-strict-aliasing \
          $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) $(EXTRA_CFLAGS)
CPPFLAGS := -I. -Ishim -D_GNU_SOURCE -DGS_VERSION=\"$(VERSION)\"
LDFLAGS := -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,-z,relro -Wl,-z,now -Wl,--as-needed \
           $(if $(SAN),-fsanitize=$(SAN)) $(EXTRA_LDFLAGS)

INIH := $(firstword $(wildcard $(shell $(CC) -print-file-name=libinih.a)) )
LIB_SOURCES := $(wildcard shim/*.c policy/*.c gpu_backends/*.c) \
               $(filter-out gpu_backends/cuda/check_headers.c,$(wildcard gpu_backends/cuda/*.c))
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/obj/%.o)

.PHONY: all
all: $(BUILD)/libgpushim.so $(BUILD)/tables.json header-check

$(BUILD)/libgpushim.so: $(LIB_OBJECTS) $(BUILD)/exports.map
	@echo "  LD    $@"
	$(Q)$(CC) -shared -o $@ $(LIB_OBJECTS) -Wl,--version-script=$(BUILD)/exports.map \
	    -Wl,-soname,libgpushim.so $(LDFLAGS) $(INIH) -lm

# gcc writes the slots of absent hidden lengths back before a tail jump: callers that pass none
# would find their stack changed. So no tail jumps out of the stubs.
$(BUILD)/obj/shim/entries.o: CFLAGS += -fno-optimize-sibling-calls

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/exports.map: shim/exports.map.in $(wildcard shim/*.inc shim/*.h shim/expand/*.inc)
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x c -Ishim $< -o $@

$(BUILD)/tables.json: tools/tables.json.in $(wildcard shim/*.inc shim/*.h shim/expand/*.inc policy/*.def) VERSION
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x c -I. -Ishim -DGS_VERSION=\"$(VERSION)\" $< -o $@

# Our tables of foreign prototypes against the real headers, wherever those are installed.
CUDA_INCLUDE := $(firstword $(wildcard $(addsuffix /include,$(CUDA_HOME) /usr/local/cuda)))
CBLAS_HEADER := $(firstword $(wildcard /usr/include/cblas.h /usr/include/*/cblas.h))
.PHONY: header-check
header-check:
ifneq ($(and $(CBLAS_HEADER),$(shell command -v $(CXX))),)
header-check: $(BUILD)/obj/check_cblas.o
$(BUILD)/obj/check_cblas.o: shim/check_cblas.cc $(wildcard shim/*.inc shim/*.h shim/*/*.inc)
	@mkdir -p $(@D)
	@echo "  CHECK $<"
	$(Q)$(CXX) -std=gnu++17 -Wall -Ishim -c -o $@ $<
endif
ifneq ($(wildcard $(CUDA_INCLUDE)/cublas_v2.h),)
header-check: $(BUILD)/obj/check_cuda_headers.o
$(BUILD)/obj/check_cuda_headers.o: gpu_backends/cuda/check_headers.c $(wildcard gpu_backends/cuda/*.def gpu_backends/cuda/*.h)
	@mkdir -p $(@D)
	@echo "  CHECK $<"
	$(Q)$(CC) -std=gnu11 -Wall -I$(CUDA_INCLUDE) -c -o $@ $<
endif

-include $(LIB_OBJECTS:.o=.d)

.PHONY: clean
clean:
	rm -rf build build-*

include tests/fakecuda/fakecuda.mk tests/unit/unit.mk tests/abi/abi.mk tests/preload/preload.mk

# --- what a newcomer types ----------------------------------------------------------------------

PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)

.PHONY: demo
demo:
	@tests/prerequisites.sh demo
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tests/environments.py --first >/dev/null
	@echo "== tools/gpushim run examples/demo.py"
	@.venv/bin/python tools/gpushim run .venv/bin/python examples/demo.py
	@echo "== tools/gpushim report"
	@.venv/bin/python tools/gpushim report

$(BUILD)/bench/%: bench/%.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) -std=gnu11 -O2 -Wall -Wextra -pthread -o $@ $< -ldl

.PHONY: bench-programs
bench-programs: $(BUILD)/bench/level3_worker

.PHONY: test-programs
test-programs: all fakecuda unit-tests abi-tests preload-tests

.PHONY: check check-long
check check-long:
	@tests/prerequisites.sh check
	@$(MAKE) --no-print-directory -j2 test-programs
	@$(MAKE) --no-print-directory -j2 SAN=address,undefined test-programs
	@$(MAKE) --no-print-directory -j2 SAN=thread test-programs
	@$(MAKE) --no-print-directory -j2 CC=clang DEBUG=1 BUILD=build-clang all
	@tools/check_layers.py $(BUILD)/libgpushim.so
	@$(PYTHON) tests/run.py $(if $(filter check-long,$@),--long)
