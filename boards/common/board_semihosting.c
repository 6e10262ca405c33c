/* SPDX-License-Identifier: Apache-2.0 */
#include "board_semihosting.h"

#include <string.h>

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE0 = 0x04,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_EXIT_EXTENDED = 0x20
};

enum { MODE_READ_BINARY = 1, MODE_WRITE_BINARY = 5 };

static const uintptr_t application_exit = 0x20026u;

static uintptr_t call(uintptr_t operation, const void *argument)
{
#if defined(__riscv)
    register uintptr_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    /* the three instructions are the mark of a semihosting call; they must share a page */
    __asm__ volatile(".balign 16\n"
                     ".option push\n"
                     ".option norvc\n"
                     "slli zero, zero, 0x1f\n"
                     "ebreak\n"
                     "srai zero, zero, 7\n"
                     ".option pop\n"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
#else
    register uintptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#endif
}

static int32_t open_file(const char *name, uintptr_t mode)
{
    const uintptr_t block[3] = {(uintptr_t)name, mode, strlen(name)};
    return (int32_t)call(SYS_OPEN, block);
}

int32_t board_open_read(const char *name)
{
    return open_file(name, MODE_READ_BINARY);
}

int32_t board_open_write(const char *name)
{
    return open_file(name, MODE_WRITE_BINARY);
}

size_t board_read(int32_t handle, void *data, size_t bytes)
{
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, bytes};
    return bytes - call(SYS_READ, block);
}

size_t board_write(int32_t handle, const void *data, size_t bytes)
{
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, bytes};
    return bytes - call(SYS_WRITE, block);
}

void board_close(int32_t handle)
{
    const uintptr_t block[1] = {(uintptr_t)handle};
    (void)call(SYS_CLOSE, block);
}

void board_print(const char *text)
{
    (void)call(SYS_WRITE0, text);
}

void board_print_hex(uint32_t value)
{
    char text[11] = "0x00000000";
    for (int i = 9; i >= 2; i--) {
        text[i] = "0123456789abcdef"[value & 15u];
        value >>= 4;
    }
    board_print(text);
}

void board_exit(int32_t status)
{
    const uintptr_t block[2] = {application_exit, (uintptr_t)status};
    for (;;) {
        (void)call(SYS_EXIT_EXTENDED, block);
    }
}
