# SPDX-License-Identifier: Apache-2.0
#
# The recording BLAS and its caller, in both integer widths.

ABI_OUT := $(BUILD)/tests/abi
ABI_TABLES := $(wildcard tests/abi/*.inc tests/abi/*/*.inc tests/abi/*.h shim/*.inc shim/*.h shim/signatures/*.inc)
ABI_CFLAGS = $(CFLAGS) -fvisibility=default

.PHONY: abi-tests
abi-tests: $(foreach w,4 8,$(ABI_OUT)/librecorder$(w).so $(ABI_OUT)/caller$(w))

# The recorder is what the preload is measured against: never instrumented, always optimised.
$(ABI_OUT)/librecorder%.so: tests/abi/recorder.c $(ABI_TABLES)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(ABI_CFLAGS) -fno-sanitize=all -O2 -Wno-missing-prototypes \
	    -DRECORDER_BYTES=$* -shared -Wl,-soname,$(@F) -o $@ $<

$(ABI_OUT)/caller%: tests/abi/caller.c tests/abi/kinds.c tests/abi/entries.c tests/abi/raw_call.c \
		$(ABI_OUT)/librecorder%.so $(ABI_TABLES)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) $(ABI_CFLAGS) -DRECORDER_BYTES=$* \
	    -DRECORDER_NAME=\"librecorder$*.so\" -o $@ $(filter %.c,$^) \
	    -L$(@D) -lrecorder$* '-Wl,-rpath,$$ORIGIN' -ldl
