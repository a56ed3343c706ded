/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_call.h"

#include <stddef.h>

#if RAW_CALL_WORKS

_Static_assert(offsetof(struct raw_call, registers) == 8, "known to the assembly below");
_Static_assert(offsetof(struct raw_call, vectors) == 56, "known to the assembly below");
_Static_assert(offsetof(struct raw_call, slots) == 72, "known to the assembly below");
_Static_assert(offsetof(struct raw_call, stack) == 80, "known to the assembly below");
_Static_assert(offsetof(struct raw_call, canaries) == 192, "known to the assembly below");

/* rbx: the struct. Eight canaries are pushed, then the stack arguments, last first. */
__asm__(".text\n"
        ".globl raw_call\n"
        ".hidden raw_call\n"
        ".type raw_call, @function\n"
        "raw_call:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    mov %rdi, %rbx\n"
        "    mov 72(%rbx), %r12\n"
        "    test $1, %r12\n" /* the stack is aligned at the call */
        "    jz 1f\n"
        "    sub $8, %rsp\n"
        "1:  mov $7, %eax\n"
        "2:  push 192(%rbx,%rax,8)\n"
        "    dec %rax\n"
        "    jns 2b\n"
        "    mov %r12, %rax\n"
        "3:  dec %rax\n"
        "    js 4f\n"
        "    push 80(%rbx,%rax,8)\n"
        "    jmp 3b\n"
        "4:  mov 8(%rbx), %rdi\n"
        "    mov 16(%rbx), %rsi\n"
        "    mov 24(%rbx), %rdx\n"
        "    mov 32(%rbx), %rcx\n"
        "    mov 40(%rbx), %r8\n"
        "    mov 48(%rbx), %r9\n"
        "    movq 56(%rbx), %xmm0\n"
        "    movq 64(%rbx), %xmm1\n"
        "    call *(%rbx)\n"
        "    lea (%rsp,%r12,8), %rsp\n"
        "    xor %eax, %eax\n"
        "5:  pop 192(%rbx,%rax,8)\n"
        "    inc %rax\n"
        "    cmp $8, %rax\n"
        "    jne 5b\n"
        "    lea -16(%rbp), %rsp\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size raw_call, . - raw_call\n");

#endif
