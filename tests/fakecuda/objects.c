/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of what callers hold handles of. A handle is looked up before it is used, so that a
 * stale or wild one gives a status where the real libraries crash.
 */
#include "fake.h"

static struct object *first;
static unsigned long live[OBJECT_KINDS];

struct object *objects_first(void)
{
    return first;
}

unsigned long objects_live(enum object_kind kind)
{
    return live[kind];
}

void fakecuda_object_add(struct object *object, enum object_kind kind, CUcontext context)
{
    object->kind = kind;
    object->context = context;
    object->next = first;
    first = object;
    live[kind]++;
}

void fakecuda_object_remove(struct object *object)
{
    for (struct object **at = &first; *at; at = &(*at)->next) {
        if (*at == object) {
            *at = object->next;
            live[object->kind]--;
            return;
        }
    }
}

bool fakecuda_object_is(const void *pointer, enum object_kind kind)
{
    for (const struct object *at = first; at; at = at->next)
        if (at == pointer && at->kind == kind)
            return true;
    return false;
}
