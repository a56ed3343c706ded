# SPDX-License-Identifier: Apache-2.0
#
# The CUDA doubles: $(BUILD)/fakecuda with the names of CUDA 13, $(BUILD)/fakecuda12 with those of
# CUDA 12. Needs a static serial OpenBLAS (Debian: libopenblas-serial-dev); say where with
# FAKECUDA_OPENBLAS=/path/libopenblas.a.

FAKECUDA_DIR := $(dir $(lastword $(MAKEFILE_LIST)))
FAKECUDA_OBJ := $(BUILD)/fakecuda/obj

FAKECUDA_OPENBLAS ?= $(firstword \
	$(wildcard /usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)/openblas-serial/libopenblas.a) \
	$(wildcard /usr/lib/*/openblas-serial/libopenblas.a) \
	$(shell $(CC) -print-file-name=libopenblas.a))

FAKECUDA_CUDA_OBJECTS := $(addprefix $(FAKECUDA_OBJ)/, entry.o settings.o counts.o objects.o \
	driver.o memory.o pool.o stream.o event.o copy.o)
FAKECUDA_CUBLAS_OBJECTS := $(addprefix $(FAKECUDA_OBJ)/, cublas.o level3.o level3_run.o)
FAKECUDA_LIBRARIES := $(BUILD)/fakecuda/libcuda.so.1 $(BUILD)/fakecuda/libcublas.so.13 \
	$(BUILD)/fakecuda12/libcuda.so.1 $(BUILD)/fakecuda12/libcublas.so.12

FAKECUDA_CFLAGS := -std=gnu11 -D_GNU_SOURCE -pthread
FAKECUDA_LDFLAGS := -shared -pthread -Wl,-Bsymbolic -Wl,--exclude-libs,ALL

.PHONY: fakecuda
fakecuda: $(FAKECUDA_LIBRARIES)

$(FAKECUDA_OBJ)/%.o: $(FAKECUDA_DIR)%.c $(FAKECUDA_DIR)fakecuda.mk
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS) $(FAKECUDA_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

$(BUILD)/fakecuda/libcuda.so.1: $(FAKECUDA_CUDA_OBJECTS) $(FAKECUDA_DIR)libcuda.map
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(FAKECUDA_LDFLAGS) -Wl,-soname,$(@F) \
	    -Wl,--version-script=$(FAKECUDA_DIR)libcuda.map -o $@ $(FAKECUDA_CUDA_OBJECTS)

$(BUILD)/fakecuda12/libcuda.so.1: $(BUILD)/fakecuda/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Real cuBLAS does not need libcuda by name; ours does, and finds it beside itself.
$(BUILD)/fakecuda/libcublas.so.13 $(BUILD)/fakecuda12/libcublas.so.12: $(FAKECUDA_CUBLAS_OBJECTS) \
		$(BUILD)/fakecuda/libcuda.so.1 $(FAKECUDA_DIR)libcublas.map
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(FAKECUDA_LDFLAGS) -Wl,-soname,$(@F) \
	    -Wl,--version-script=$(FAKECUDA_DIR)libcublas.map \
	    -Wl,--enable-new-dtags '-Wl,-rpath,$$ORIGIN' -o $@ $(FAKECUDA_CUBLAS_OBJECTS) \
	    $(BUILD)/fakecuda/libcuda.so.1 $(FAKECUDA_OPENBLAS) -lm

# Asks a driver and a cuBLAS the same questions; compare.c says how to use it.
$(BUILD)/fakecuda/compare: $(addprefix $(FAKECUDA_DIR), compare.c compare_driver.c \
		compare_cublas.c compare_level3.c compare.h client.h)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(FAKECUDA_CFLAGS) -o $@ $(filter %.c,$^) -ldl -lm

# Its unit test. -rdynamic: the test has a dgemm_ of its own that must not be found.
$(BUILD)/fakecuda/test_fakecuda: $(FAKECUDA_DIR)../unit/test_fakecuda.c \
		$(wildcard $(FAKECUDA_DIR)*.inc) $(FAKECUDA_DIR)check.h $(FAKECUDA_DIR)client.h \
		| $(FAKECUDA_LIBRARIES)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(FAKECUDA_CFLAGS) -fvisibility=default -rdynamic \
	    -DFAKECUDA_PATH='"$(abspath $(BUILD))/fakecuda"' -o $@ $< -ldl -lm -lcmocka

-include $(FAKECUDA_CUDA_OBJECTS:.o=.d) $(FAKECUDA_CUBLAS_OBJECTS:.o=.d)
