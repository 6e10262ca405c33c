/* SPDX-License-Identifier: Apache-2.0
 * Startup of RISC-V cores in machine mode: write-protected flash, traps as sentences,
 * the cycle counter as clock. */
#include "board_startup.h"

#include "board_semihosting.h"

#if !defined(__riscv)
#error "compile for RISC-V"
#endif

/* Traps have their own stack, which is sound when the program's has overflowed. */
__attribute__((used)) uint64_t board_trap_stack[64];

void board_trap(void);
void board_report_trap(uint32_t cause, uint32_t pc, uint32_t value, const uint32_t *registers);

/* clang-format off */
__attribute__((naked, section(".vectors"))) void board_reset(void)
{
    __asm__ volatile(
        ".option push\n"
        ".option norelax\n"
        ".option arch, +zicsr\n"
        "la sp, board_stack_top\n"
        "la tp, board_tls\n"
        "la t0, board_trap\n"
        "csrw mtvec, t0\n"
        /* PMP: one locked region from 0 to the end of the flash without the right to write */
        "la t0, board_flash_end\n"
        "srli t0, t0, 2\n"
        "csrw pmpaddr0, t0\n"
        "li t0, 0x8D\n" /* locked, top of range, execute and read */
        "csrw pmpcfg0, t0\n"
        "la t0, board_start\n"
        "jr t0\n"
        ".option pop\n");
}

__attribute__((naked, aligned(4))) void board_trap(void)
{
    __asm__ volatile(
        ".option push\n"
        ".option arch, +zicsr\n"
        "csrw mscratch, sp\n"
        "la sp, board_trap_stack + 480\n"
        "sw ra, 4(sp)\n"
        "sw a0, 8(sp)\n"
        "sw a1, 12(sp)\n"
        "sw a2, 16(sp)\n"
        "sw a3, 20(sp)\n"
        "csrr a3, mscratch\n"
        "sw a3, 0(sp)\n"
        "mv a3, sp\n"
        "csrr a0, mcause\n"
        "csrr a1, mepc\n"
        "csrr a2, mtval\n"
        "j board_report_trap\n"
        ".option pop\n");
}
/* clang-format on */

void board_clock_start(void)
{
}

/* QEMU counts nanoseconds there, of which an instruction takes 64 */
uint32_t board_clock(void)
{
    uint32_t low;
    uint32_t high;
    uint32_t again;
    do {
        __asm__ volatile(".option push\n"
                         ".option arch, +zicsr\n"
                         "csrr %0, mcycleh\n"
                         "csrr %1, mcycle\n"
                         "csrr %2, mcycleh\n"
                         ".option pop\n"
                         : "=&r"(high), "=&r"(low), "=&r"(again));
    } while (high != again);
    return (high << 26) | (low >> 6);
}

static const char *const names[8] = {
    "jump to an odd address", "instruction fetched from an address without memory",
    "undefined instruction",  "breakpoint",
    "unaligned load",         "load from an address without memory",
    "unaligned store",        "store to an address without memory or to flash"};

__attribute__((used)) void board_report_trap(uint32_t cause, uint32_t pc, uint32_t value,
                                             const uint32_t *registers)
{
    static const char *const labels[6] = {", sp ", ", ra ", ", a0 ", ", a1 ", ", a2 ", ", a3 "};
    board_print("fault: ");
    board_print(cause < 8u ? names[cause] : "unexpected interrupt or trap");
    if (registers[0] < (uint32_t)(uintptr_t)board_stack_bottom) {
        board_print(", stack overflow");
    }
    board_print(", address ");
    board_print_hex(value);
    board_print(", pc ");
    board_print_hex(pc);
    for (unsigned i = 0; i < 6u; i++) {
        board_print(labels[i]);
        board_print_hex(registers[i]);
    }
    board_print("\n");
    board_exit(BOARD_FAULT_STATUS);
}
