# SPDX-License-Identifier: Apache-2.0
#
# Each tests/unit/test_*.c becomes one program, linked with those objects of the library that it
# needs: an archive gives no others.

UNIT_OUT := $(BUILD)/tests/unit
UNIT_PROGRAMS := $(patsubst tests/unit/%.c,$(UNIT_OUT)/%,$(wildcard tests/unit/test_*.c))

.PHONY: unit-tests
unit-tests: $(UNIT_PROGRAMS)

$(UNIT_OUT)/libparts.a: $(LIB_OBJECTS)
	@mkdir -p $(@D)
	@echo "  AR    $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(UNIT_OUT)/%: tests/unit/%.c $(UNIT_OUT)/libparts.a $(wildcard tests/unit/*.h)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS:-D_GNU_SOURCE=-D_GNU_SOURCE=) $(CFLAGS) -Wno-missing-prototypes -pthread -o $@ $< \
	    $(UNIT_OUT)/libparts.a -lcmocka $(INIH) -ldl -lm
